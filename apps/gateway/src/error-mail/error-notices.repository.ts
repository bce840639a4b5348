import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, Index, LessThan, PrimaryColumn, Repository } from 'typeorm';
import { type ErrorRaised, storableText, type UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, type Transaction } from '#database';
import { AccountRow } from '../accounts/account.entity.js';

/** The last mail about an error with one code of one emitter, and how many more errors there were since. */
@Entity('error_notice')
export class ErrorNotice {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn(BYTEWISE_TEXT)
  subject_id!: string;

  @PrimaryColumn('text')
  code!: string;

  @Column('timestamptz')
  mailed_at!: Date;

  @Column('int', { default: 0 })
  since!: number;
}

/** An error that is already counted: a fact may arrive twice. */
@Entity('error_seen')
@Index('error_seen_age', ['seen_at'])
export class SeenError {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column(CREATED_AT)
  seen_at!: Date;
}

/** A mail that is due. */
export interface DueMail {
  email: string;
  /** Errors of the same kind since the previous mail. */
  since: number;
}

const ONE_MAIL_IN_HOURS = 24;
/** Of one account in that time: code may throw errors with ever new codes. */
const MOST_MAILS = 100;
const DAY_MS = 24 * 3_600_000;
const KEEP_SEEN_MS = 8 * DAY_MS;
/** The next mail does not mention errors before that. */
const KEEP_NOTICES_MS = 90 * DAY_MS;
/** Sending a mail takes several steps of up to ten seconds each. */
const MAIL_SECONDS = 120;

/** The only writer of the tables `error_notice` and `error_seen`. */
@Injectable()
export class ErrorNoticesRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(SeenError) private readonly seen: Repository<SeenError>,
  ) {}

  /**
   * Counts an error, and calls `mail` if a mail about it is due: for the first error of its emitter and code in 24 hours, at most 100 times per account.
   * If `mail` throws, nothing is stored, and the error can be counted again.
   */
  async count({ id, owner_id, subject_id, ...error }: ErrorRaised, mail: (due: DueMail) => Promise<void>): Promise<void> {
    const code = storableText(error.code);
    await this.database.transaction(async (transaction) => {
      const seen = await transaction.rows(SeenError).createQueryBuilder().insert().values({ id }).orIgnore().returning('id').execute();
      if ((seen.raw as object[]).length === 0) return;
      const account = await transaction.rows(AccountRow).findOneBy({ id: owner_id, error_mail: true });
      if (!account) return;
      // SQL: the database's clock decides what is recent, and the row stays locked until the mail is sent
      const { rows: before } = await transaction.query<{ since: number; recent: boolean }>(
        `SELECT since, mailed_at > now() - make_interval(hours => ${ONE_MAIL_IN_HOURS}) AS recent FROM error_notice
         WHERE account_id = $1 AND subject_id = $2 AND code = $3 FOR UPDATE`,
        [owner_id, subject_id, code],
      );
      const mailedRecently = before[0]?.recent === true;
      if (!mailedRecently && (await this.hasMostMails(transaction, owner_id))) return;
      await transaction.query(
        `INSERT INTO error_notice (account_id, subject_id, code, mailed_at) VALUES ($1, $2, $3, now())
         ON CONFLICT (account_id, subject_id, code) DO UPDATE SET
           since = CASE WHEN $4 THEN error_notice.since + 1 ELSE 0 END, mailed_at = CASE WHEN $4 THEN error_notice.mailed_at ELSE now() END`,
        [owner_id, subject_id, code, mailedRecently],
      );
      if (mailedRecently) return;
      await transaction.query(`SET LOCAL idle_in_transaction_session_timeout = '${MAIL_SECONDS}s'`);
      await mail({ email: account.email, since: before[0]?.since ?? 0 });
    });
  }

  private async hasMostMails(transaction: Transaction, accountId: UserId): Promise<boolean> {
    const { rowCount } = await transaction.query(
      `SELECT FROM error_notice WHERE account_id = $1 AND mailed_at > now() - make_interval(hours => ${ONE_MAIL_IN_HOURS}) LIMIT ${MOST_MAILS}`,
      [accountId],
    );
    return rowCount === MOST_MAILS;
  }

  async deleteOld(): Promise<void> {
    await this.seen.delete({ seen_at: LessThan(new Date(Date.now() - KEEP_SEEN_MS)) });
    await this.database.rows(ErrorNotice).delete({ mailed_at: LessThan(new Date(Date.now() - KEEP_NOTICES_MS)) });
  }
}

/** Deletes the notices of a deleted account. */
export async function deleteNoticesOf(transaction: Transaction, accountId: UserId): Promise<void> {
  await transaction.rows(ErrorNotice).delete({ account_id: accountId });
}
