import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, Index, IsNull, LessThan, PrimaryColumn, Repository } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database } from '#database';
import { isSealed, SecretBox } from '#secrets';

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

  /** null while the first request is in progress. */
  @Column('int', { nullable: true })
  status!: number | null;

  @Column('text', { nullable: true })
  content_type!: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true })
  body!: string | null;

  @Column(CREATED_AT)
  created_at!: Date;
}

export interface StoredResponse {
  status: number;
  content_type: string | null;
  body: string | null;
}

/** The result of claiming a key. */
export type Claim = 'claimed' | 'in flight' | 'other payload' | StoredResponse;

const KEEP_HOURS = 24;
/** A first request that has not ended by then never will: its gateway crashed. */
const ABANDONED_SECONDS = 60;

@Injectable()
export class IdempotencyRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(IdempotentRequest) private readonly requests: Repository<IdempotentRequest>,
    private readonly box: SecretBox,
  ) {}

  /** Claims the key for a request, or returns the result of the first request with it. */
  async claim(accountId: UserId, key: string, fingerprint: Buffer): Promise<Claim> {
    // SQL, for the conditions of the upsert: of two requests at once exactly one claims the key
    const { rowCount } = await this.database.query(
      `INSERT INTO idempotent_request (account_id, key, fingerprint) VALUES ($1, $2, $3)
       ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
       WHERE idempotent_request.created_at < now() - make_interval(hours => ${KEEP_HOURS})
          OR (idempotent_request.status IS NULL AND idempotent_request.fingerprint = excluded.fingerprint
              AND idempotent_request.created_at < now() - make_interval(secs => ${ABANDONED_SECONDS}))`,
      [accountId, key, fingerprint],
    );
    if (rowCount === 1) return 'claimed';
    const first = await this.requests.findOneBy({ account_id: accountId, key });
    if (!first) return 'in flight';
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    if (first.status === null) return 'in flight';
    const body = isSealed(first.body) ? this.box.open(first.body, responseContext(accountId, key)) : first.body;
    return { status: first.status, content_type: first.content_type, body };
  }

  async keep(accountId: UserId, key: string, response: StoredResponse): Promise<void> {
    // the response may be the only one that contains a secret, such as a new signing secret
    const body = response.body === null ? null : this.box.seal(response.body, responseContext(accountId, key));
    await this.requests.update({ account_id: accountId, key }, { ...response, body });
  }

  /** Releases the key after a failure, so that it can be used again. */
  async release(accountId: UserId, key: string): Promise<void> {
    await this.requests.delete({ account_id: accountId, key, status: IsNull() });
  }

  async deleteOld(): Promise<void> {
    await this.requests.delete({ created_at: LessThan(new Date(Date.now() - KEEP_HOURS * 3_600_000)) });
  }
}

/** The context to which the encryption of a stored response is bound. */
export const responseContext = (accountId: string, key: string): string => `response ${accountId} ${key}`;
