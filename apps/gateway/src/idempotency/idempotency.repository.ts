import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, deleteOlder, isLeased, type Transaction } from '#database';
import { LATE_MS } from '#messaging';
import { LOG, type Log } from '#observability';
import { isSealed, SecretBox } from '#secrets';
import { inTime, inTimeOrLater } from '../database/in-time.js';
import { CODE_TIMEOUT_MS } from '../http/longest-request.js';

/** The previous version does not set it: as long as its longest request lasts. */
const LEASE_OF_OLDER_GATEWAYS = "(now() + '00:03:00')";

/** A POST with an `Idempotency-Key`, and the response that a repeat gets. */
@Entity('idempotent_request')
@Index('idempotent_request_age', ['created_at'])
export class IdempotentRequest {
  @PrimaryColumn(BYTEWISE_TEXT)
  account_id!: UserId;

  @PrimaryColumn(BYTEWISE_TEXT)
  key!: string;

  /** SHA-256 of method, path, query and body. */
  @Column('bytea')
  fingerprint!: Buffer;

  /** null while the first request is in progress, and after it has failed. */
  @Column('int', { nullable: true })
  status!: number | null;

  @Column('text', { nullable: true })
  content_type!: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true })
  body!: string | null;

  /** When the key was claimed. It identifies the claim: a later one can only follow when this one has lost its lease. */
  @Column(CREATED_AT)
  created_at!: Date;

  /** The first request failed, and another may use the key. */
  @Column('boolean', { default: false })
  free!: boolean;

  /** When the key was first claimed, also if that request failed. */
  @Column(CREATED_AT)
  first_at!: Date;

  /** The gateway renews it while the request is in progress. When it has passed, a repeat may run: the gateway was killed or is frozen. */
  @Column('timestamptz', { default: () => LEASE_OF_OLDER_GATEWAYS })
  leased_until!: Date;
}

export interface StoredResponse {
  status: number;
  content_type: string | null;
  /** null: the response had none, or it is not stored. */
  body: string | null;
}

/** The first request with a key: the ids of what it makes are derived from this. */
export interface FirstRequest {
  accountId: UserId;
  key: string;
  fingerprint: Buffer;
  firstAt: Date;
}

/** A key that a request holds. */
export interface HeldKey extends FirstRequest {
  /** `created_at` as text: a JavaScript date lacks its microseconds. */
  claimedAt: string;
}

/** The result of claiming a key. */
export type Claim =
  | { held: HeldKey }
  | 'other payload'
  | { stored: StoredResponse; first: FirstRequest }
  /** The first request is in progress. By then it has ended, or shows again that it is in progress. */
  | { retryAfterSeconds: number };

const KEEP_HOURS = 24;
/**
 * The longest that the key of a killed gateway is taken. It can be shorter than a request: if a repeat runs while the first request is still in progress,
 * because its gateway was frozen, both make the same (new-ids.ts).
 */
const LEASE = "interval '10 s'";
/** Requests that are shorter than this cost no renewal. */
const RENEW_MS = 3000;
/** The longest request waits for new code, and then for its late reply. */
const LONGEST_MS = CODE_TIMEOUT_MS + LATE_MS + 60_000;

/** The only writer of the table `idempotent_request`. */
@Injectable()
export class IdempotencyRepository {
  /** The keys that requests of this process hold, with the time of their claims. */
  private readonly held = new Map<HeldKey, number>();

  constructor(
    private readonly database: Database,
    private readonly box: SecretBox,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** Claims the key for a request, or returns the result of the first request with it. Throws Unavailable if the database does not respond in time. */
  claim(accountId: UserId, key: string, fingerprint: Buffer): Promise<Claim> {
    let isLate = false;
    const claiming = this.claimOrFind(accountId, key, fingerprint).then(async (claim) => {
      // the request has got 503: a repeat must not wait for it
      if (isLate && claim !== 'other payload' && 'held' in claim) await this.release(claim.held);
      return claim;
    });
    return inTime(claiming, () => (isLate = true));
  }

  private async claimOrFind(accountId: UserId, key: string, fingerprint: Buffer): Promise<Claim> {
    const expired = `claimed.created_at < now() - make_interval(hours => ${KEEP_HOURS})`;
    const abandoned = `claimed.fingerprint = excluded.fingerprint AND NOT ${isLeased('claimed.leased_until')}`;
    // SQL, for the conditions of the upsert: of two requests at once exactly one claims the key
    const { rows } = await this.database.query<{ claimed_at: string; first_at: Date }>(
      `INSERT INTO idempotent_request AS claimed (account_id, key, fingerprint, leased_until) VALUES ($1, $2, $3, now() + ${LEASE})
       ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now(), free = false,
         leased_until = excluded.leased_until, first_at = CASE WHEN ${expired} THEN now() ELSE claimed.first_at END
       WHERE ${expired} OR (claimed.status IS NULL AND (claimed.free OR (${abandoned})))
       RETURNING created_at::text AS claimed_at, first_at`,
      [accountId, key, fingerprint],
    );
    const [row] = rows;
    if (row) {
      const held = { accountId, key, fingerprint, claimedAt: row.claimed_at, firstAt: row.first_at };
      this.held.set(held, performance.now());
      return { held };
    }
    const first = await this.find(accountId, key);
    // deleted meanwhile
    if (!first) return { retryAfterSeconds: 1 };
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    if (first.status === null) return { retryAfterSeconds: Math.max(1, first.leased_for) };
    const body = isSealed(first.body) ? this.box.open(first.body, responseContext(accountId, key)) : first.body;
    const stored = { status: first.status, content_type: first.content_type, body };
    return { stored, first: { accountId, key, fingerprint, firstAt: first.first_at } };
  }

  /** SQL, for the rest of the lease in seconds by the clock that has set it. */
  private async find(accountId: UserId, key: string): Promise<(IdempotentRequest & { leased_for: number }) | undefined> {
    const { rows } = await this.database.query<IdempotentRequest & { leased_for: number }>(
      'SELECT *, ceil(extract(epoch FROM leased_until - now()))::int AS leased_for FROM idempotent_request WHERE account_id = $1 AND key = $2',
      [accountId, key],
    );
    return rows[0];
  }

  /** Renews the leases of requests that take long. SQL: one statement for all of them. */
  @Interval(RENEW_MS)
  async renew(): Promise<void> {
    const now = performance.now();
    for (const [held, since] of this.held) if (now - since > LONGEST_MS) this.held.delete(held);
    const renewed = [...this.held].filter(([, since]) => now - since >= RENEW_MS).map(([held]) => held);
    if (renewed.length === 0) return;
    try {
      await this.database.query(
        `UPDATE idempotent_request SET leased_until = now() + ${LEASE}
         FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS held (account_id, key, claimed_at)
         WHERE idempotent_request.account_id = held.account_id AND idempotent_request.key = held.key AND created_at = claimed_at AND status IS NULL`,
        [renewed.map(({ accountId }) => accountId), renewed.map(({ key }) => key), renewed.map(({ claimedAt }) => claimedAt)],
      );
    } catch (err) {
      this.log.warn({ requests: renewed.length, err }, 'idempotency-keys.not-renewed');
    }
  }

  /**
   * Stores the response, unless another request has taken over the key. If the database does not respond in time, that continues behind the response; until
   * then, a repeat gets 409.
   */
  keep(held: HeldKey, response: StoredResponse): Promise<void> {
    const storing = this.store(held, response).finally(() => this.held.delete(held));
    return inTimeOrLater(storing, (err) => this.log.warn({ account_id: held.accountId, err }, 'request.response-not-stored'));
  }

  private async store({ accountId, key, claimedAt }: HeldKey, { status, content_type, body }: StoredResponse): Promise<void> {
    // the response may be the only one that contains a secret, such as a new signing secret
    const sealed = body === null ? null : this.box.seal(body, responseContext(accountId, key));
    await this.database.query(
      `UPDATE idempotent_request SET status = $4, content_type = $5, body = $6 WHERE account_id = $1 AND key = $2 AND created_at = $3::timestamptz`,
      [accountId, key, claimedAt, status, content_type, sealed],
    );
  }

  /**
   * Releases the key after a failure, so that it can be used again. The row stays, because the next request must know when the first one was. If the
   * database does not respond in time, the lease of the key expires.
   */
  release(held: HeldKey): Promise<void> {
    const { accountId, key, claimedAt } = held;
    this.held.delete(held);
    const releasing = this.database.query(
      'UPDATE idempotent_request SET free = true WHERE account_id = $1 AND key = $2 AND created_at = $3::timestamptz AND status IS NULL',
      [accountId, key, claimedAt],
    );
    return inTimeOrLater(
      releasing.then(() => {}),
      (err) => this.log.warn({ account_id: accountId, err }, 'idempotency-key.not-released'),
    );
  }

  async deleteOld(): Promise<void> {
    await deleteOlder(this.database, 'idempotent_request', 'created_at', new Date(Date.now() - KEEP_HOURS * 3_600_000));
  }
}

/** The context to which the encryption of a stored response is bound. */
export const responseContext = (accountId: string, key: string): string => `response ${accountId} ${key}`;

/** Deletes the stored responses of a deleted account. */
export async function deleteRequestsOf(transaction: Transaction, accountId: UserId): Promise<void> {
  await transaction.rows(IdempotentRequest).delete({ account_id: accountId });
}
