import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, Index, LessThan, PrimaryColumn, Repository } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, type Transaction } from '#database';
import { LATE_MS } from '#messaging';
import { isSealed, SecretBox } from '#secrets';
import { CODE_TIMEOUT_MS } from '../http/longest-request.js';

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

  /** When the key was claimed. It identifies the claim: a later one cannot follow before this one is abandoned. */
  @Column(CREATED_AT)
  created_at!: Date;

  /** The first request failed, and another may use the key. */
  @Column('boolean', { default: false })
  free!: boolean;

  /** When the key was first claimed, also if that request failed. */
  @Column(CREATED_AT)
  first_at!: Date;
}

export interface StoredResponse {
  status: number;
  content_type: string | null;
  body: string | null;
}

/** A key that a request holds. */
export interface HeldKey {
  accountId: UserId;
  key: string;
  fingerprint: Buffer;
  /** `created_at` as text: a JavaScript date lacks its microseconds. */
  claimedAt: string;
  firstAt: Date;
}

/** The result of claiming a key. */
export type Claim = { held: HeldKey } | 'in flight' | 'other payload' | { stored: StoredResponse };

const KEEP_HOURS = 24;
/** A request that has not ended by then never will: its gateway crashed. The longest one waits for new code, and then for its late reply. */
const ABANDONED_SECONDS = (CODE_TIMEOUT_MS + LATE_MS) / 1000 + 60;

@Injectable()
export class IdempotencyRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(IdempotentRequest) private readonly requests: Repository<IdempotentRequest>,
    private readonly box: SecretBox,
  ) {}

  /** Claims the key for a request, or returns the result of the first request with it. */
  async claim(accountId: UserId, key: string, fingerprint: Buffer): Promise<Claim> {
    const expired = `claimed.created_at < now() - make_interval(hours => ${KEEP_HOURS})`;
    const abandoned = `claimed.fingerprint = excluded.fingerprint AND claimed.created_at < now() - make_interval(secs => ${ABANDONED_SECONDS})`;
    // SQL, for the conditions of the upsert: of two requests at once exactly one claims the key
    const { rows } = await this.database.query<{ claimed_at: string; first_at: Date }>(
      `INSERT INTO idempotent_request AS claimed (account_id, key, fingerprint) VALUES ($1, $2, $3)
       ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now(), free = false,
         first_at = CASE WHEN ${expired} THEN now() ELSE claimed.first_at END
       WHERE ${expired} OR (claimed.status IS NULL AND (claimed.free OR (${abandoned})))
       RETURNING created_at::text AS claimed_at, first_at`,
      [accountId, key, fingerprint],
    );
    const [row] = rows;
    if (row) return { held: { accountId, key, fingerprint, claimedAt: row.claimed_at, firstAt: row.first_at } };
    const first = await this.requests.findOneBy({ account_id: accountId, key });
    if (!first) return 'in flight';
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    if (first.status === null) return 'in flight';
    const body = isSealed(first.body) ? this.box.open(first.body, responseContext(accountId, key)) : first.body;
    return { stored: { status: first.status, content_type: first.content_type, body } };
  }

  /** Stores the response, unless another request has taken over the key. */
  async keep({ accountId, key, claimedAt }: HeldKey, { status, content_type, body }: StoredResponse): Promise<void> {
    // the response may be the only one that contains a secret, such as a new signing secret
    const sealed = body === null ? null : this.box.seal(body, responseContext(accountId, key));
    await this.database.query(
      `UPDATE idempotent_request SET status = $4, content_type = $5, body = $6 WHERE account_id = $1 AND key = $2 AND created_at = $3::timestamptz`,
      [accountId, key, claimedAt, status, content_type, sealed],
    );
  }

  /** Releases the key after a failure, so that it can be used again. The row stays, because the next request must know when the first one was. */
  async release({ accountId, key, claimedAt }: HeldKey): Promise<void> {
    await this.database.query(
      'UPDATE idempotent_request SET free = true WHERE account_id = $1 AND key = $2 AND created_at = $3::timestamptz AND status IS NULL',
      [accountId, key, claimedAt],
    );
  }

  async deleteOld(): Promise<void> {
    await this.requests.delete({ created_at: LessThan(new Date(Date.now() - KEEP_HOURS * 3_600_000)) });
  }
}

/** The context to which the encryption of a stored response is bound. */
export const responseContext = (accountId: string, key: string): string => `response ${accountId} ${key}`;

/** Deletes the stored responses of a deleted account. */
export async function deleteRequestsOf(transaction: Transaction, accountId: UserId): Promise<void> {
  await transaction.rows(IdempotentRequest).delete({ account_id: accountId });
}
