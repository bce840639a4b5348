import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, Index, LessThan, PrimaryColumn, Repository } from 'typeorm';
import { type ErrorRaised, RECORDS_GONE_AFTER_DAYS, storableText, type UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, deleteOlder, type Transaction } from '#database';
import { DueRows } from '#due-work';

/** The last mail about an error with one code of one emitter, sent or waiting, and how many more errors there were since. */
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

/** A mail about an error that is not sent yet. */
@Entity('error_mail')
@Index('error_mail_due', ['due_at'])
@Index('error_mail_turn', ['account_id', 'due_at'])
export class ErrorMail {
  /** Of the error. */
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column(BYTEWISE_TEXT)
  account_id!: UserId;

  @Column('jsonb')
  error!: ErrorRaised;

  /** Errors of the same kind since the previous mail. */
  @Column('int')
  since!: number;

  /** Whether the account gets no further mail for now. */
  @Column('boolean')
  is_last!: boolean;

  /** While a gateway sends it: when its lease expires. */
  @Column(CREATED_AT)
  due_at!: Date;

  @Column('int', { default: 0 })
  attempts!: number;

  @Column(CREATED_AT)
  created_at!: Date;
}

/** A mail that this process sends. `email`: null if the account gets none any more. */
export type LeasedMail = Pick<ErrorMail, 'id' | 'account_id' | 'error' | 'since' | 'is_last' | 'attempts'> & { email: string | null };

/** Of one account in 24 hours: code may throw errors with ever new codes. */
export const MOST_MAILS = 100;
const RECENTLY = "now() - interval '24 hours'";
const GETS_MAIL = 'account.error_mail AND account.suspended_at IS NULL';
/** Longer than an attempt can take. */
const LEASE_MINUTES = 15;
const DAY_MS = 24 * 3_600_000;
const KEEP_SEEN_MS = RECORDS_GONE_AFTER_DAYS * DAY_MS;
/** The next mail does not mention errors before that. */
const KEEP_NOTICES_MS = 90 * DAY_MS;
/** A mail that is never attempted, because the mail server is down or no longer configured. */
const KEEP_MAILS_MS = 7 * DAY_MS;

/** The only writer of the tables `error_notice`, `error_seen` and `error_mail`. */
@Injectable()
export class ErrorNoticesRepository extends DueRows {
  constructor(
    private readonly database: Database,
    @InjectRepository(ErrorMail) private readonly mails: Repository<ErrorMail>,
  ) {
    super();
  }

  /**
   * Counts an error. For the first one of its emitter and code in 24 hours, a mail is due, at most 100 times per account. SQL: one statement, because an
   * account may have any number of errors, and the database's clock decides what is recent.
   */
  async count(error: ErrorRaised): Promise<void> {
    const code = storableText(error.code);
    const { rowCount } = await this.database.query({
      name: 'count-error',
      text: `WITH first_time AS (
               INSERT INTO error_seen (id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id
             ), before AS (
               SELECT since, mailed_at > ${RECENTLY} AS is_recent FROM error_notice WHERE account_id = $2 AND subject_id = $3 AND code = $4
             ), recent AS (
               SELECT count(*) AS mails FROM error_notice WHERE account_id = $2 AND mailed_at > ${RECENTLY}
             ), noted AS (
               INSERT INTO error_notice AS notice (account_id, subject_id, code, mailed_at)
               SELECT account.id, $3, $4, now() FROM account, first_time
               WHERE account.id = $2 AND ${GETS_MAIL}
                 AND (EXISTS (SELECT FROM before WHERE is_recent) OR (SELECT mails FROM recent) < ${MOST_MAILS})
               ON CONFLICT (account_id, subject_id, code) DO UPDATE SET
                 since = CASE WHEN notice.mailed_at > ${RECENTLY} THEN notice.since + 1 ELSE 0 END,
                 mailed_at = CASE WHEN notice.mailed_at > ${RECENTLY} THEN notice.mailed_at ELSE now() END
               RETURNING mailed_at = now() AS is_due
             )
             INSERT INTO error_mail (id, account_id, error, since, is_last)
             SELECT $1, $2, $5::jsonb, coalesce((SELECT since FROM before), 0), (SELECT mails FROM recent) = ${MOST_MAILS - 1}
             FROM noted WHERE is_due`,
      values: [
        ...[error.id, error.owner_id, error.subject_id, code],
        JSON.stringify({ ...error, code, message: storableText(error.message) }),
      ],
    });
    if (rowCount === 1) this.scheduled(this.database);
  }

  /** SQL, for the database's clock. */
  async msToNext(): Promise<number | null> {
    const { rows } = await this.database.query<{ ms: number | null }>({
      name: 'error-mail-first',
      text: 'SELECT extract(epoch FROM min(due_at) - now())::float8 * 1000 AS ms FROM error_mail',
      values: [],
    });
    return rows[0]!.ms;
  }

  /** The number of mails that are not sent yet. Reads all of them: not for each mail. */
  countMails(): Promise<number> {
    return this.mails.count();
  }

  /**
   * Leases a mail that is due: the first one of the account that follows `after`, so that accounts take turns. The mail is due again when the lease
   * expires, unless it is deleted or postponed before.
   */
  async leaseMail(after: string): Promise<LeasedMail | undefined> {
    return (await this.leaseNext(after)) ?? (after === '' ? undefined : this.leaseNext(''));
  }

  /**
   * SQL, for SKIP LOCKED: gateways share the work. It steps from account to account, to the first one with a mail that is due: sorting all mails, of which
   * there may be 200 000 after an outage of the mail server, takes half a second for each.
   */
  private async leaseNext(after: string): Promise<LeasedMail | undefined> {
    const first = (account: string) =>
      `SELECT account_id, due_at <= now() AS is_due FROM error_mail WHERE account_id > ${account} ORDER BY account_id, due_at LIMIT 1`;
    const { rows } = await this.database.query<LeasedMail>({
      name: 'error-mail-lease',
      text: `WITH RECURSIVE turn AS (
               (${first('$1')})
               UNION ALL
               SELECT next.* FROM turn CROSS JOIN LATERAL (${first('turn.account_id')}) AS next WHERE NOT turn.is_due
             )
             UPDATE error_mail SET due_at = now() + interval '${LEASE_MINUTES} minutes', attempts = attempts + 1 WHERE id = (
               SELECT id FROM error_mail WHERE account_id = (SELECT account_id FROM turn WHERE is_due) AND due_at <= now()
               ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
             ) RETURNING id, account_id, error, since, is_last, attempts,
               (SELECT email FROM account WHERE account.id = error_mail.account_id AND ${GETS_MAIL})`,
      values: [after],
    });
    return rows[0];
  }

  async postponeMail(id: string, minutes: number): Promise<void> {
    await this.mails.update({ id }, { due_at: () => `now() + interval '${minutes} minutes'` });
  }

  async deleteMail(id: string): Promise<void> {
    await this.mails.delete({ id });
  }

  /** Deletes mails that are too old to be sent, and returns their number. */
  async deleteOldMails(): Promise<number> {
    const { affected } = await this.mails.delete({ created_at: LessThan(new Date(Date.now() - KEEP_MAILS_MS)) });
    return affected ?? 0;
  }

  async deleteOld(): Promise<void> {
    await deleteOlder(this.database, 'error_seen', 'seen_at', new Date(Date.now() - KEEP_SEEN_MS));
    await this.database.rows(ErrorNotice).delete({ mailed_at: LessThan(new Date(Date.now() - KEEP_NOTICES_MS)) });
  }
}

/** Deletes the notices of a deleted account, and the mails that it would get. */
export async function deleteNoticesOf(transaction: Transaction, accountId: UserId): Promise<void> {
  await transaction.rows(ErrorNotice).delete({ account_id: accountId });
  await transaction.rows(ErrorMail).delete({ account_id: accountId });
}
