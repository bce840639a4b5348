import { Injectable } from '@nestjs/common';
import { type ErrorRaised, keepableText } from '#contracts';
import { Database } from '#database';

/** A mail that is due. */
export interface DueMail {
  email: string;
  /** How many errors of the same kind came since the mail before. */
  since: number;
}

const ONE_MAIL_IN_HOURS = 24;
const FORGET_AFTER_DAYS = 8;

@Injectable()
export class ErrorNoticesRepository {
  constructor(private readonly database: Database) {}

  /**
   * Counts an error, and hands it to `mail` when a mail about it is due: the first of its emitter and code in 24 hours.
   * When `mail` throws nothing is written, and the error can be counted again.
   */
  async count({ id, owner_id, subject_id, ...error }: ErrorRaised, mail: (due: DueMail) => Promise<void>): Promise<void> {
    const code = keepableText(error.code);
    await this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query('INSERT INTO error_seen (id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);
      if (rowCount === 0) return;
      const { rows: accounts } = await transaction.query<{ email: string }>('SELECT email FROM account WHERE id = $1 AND error_mail', [
        owner_id,
      ]);
      const [account] = accounts;
      if (!account) return;
      const { rows: before } = await transaction.query<{ since: number; recent: boolean }>(
        `SELECT since, mailed_at > now() - make_interval(hours => ${ONE_MAIL_IN_HOURS}) AS recent FROM error_notice
         WHERE account_id = $1 AND subject_id = $2 AND code = $3 FOR UPDATE`,
        [owner_id, subject_id, code],
      );
      const mailedRecently = before[0]?.recent === true;
      await transaction.query(
        `INSERT INTO error_notice (account_id, subject_id, code, mailed_at) VALUES ($1, $2, $3, now())
         ON CONFLICT (account_id, subject_id, code) DO UPDATE SET
           since = CASE WHEN $4 THEN error_notice.since + 1 ELSE 0 END, mailed_at = CASE WHEN $4 THEN error_notice.mailed_at ELSE now() END`,
        [owner_id, subject_id, code, mailedRecently],
      );
      if (!mailedRecently) await mail({ email: account.email, since: before[0]?.since ?? 0 });
    });
  }

  async forgetSeen(): Promise<void> {
    await this.database.query(`DELETE FROM error_seen WHERE seen_at < now() - make_interval(days => ${FORGET_AFTER_DAYS})`);
  }
}
