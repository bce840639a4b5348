import { Injectable } from '@nestjs/common';
import { Database } from '#database';

export interface StoredAnswer {
  status: number;
  content_type: string | null;
  body: string | null;
}

/** What a request with a key meets. */
export type Claim = 'claimed' | 'in flight' | 'other payload' | StoredAnswer;

const KEEP_HOURS = 24;
/** A first request that hasn't ended by then never will: its gateway died. */
const ABANDONED_SECONDS = 60;

@Injectable()
export class IdempotencyRepository {
  constructor(private readonly database: Database) {}

  /** Claims the key for a request, or tells what became of the one that had it first. */
  async claim(accountId: string, key: string, fingerprint: Buffer): Promise<Claim> {
    const { rowCount } = await this.database.query(
      `INSERT INTO idempotent_request (account_id, key, fingerprint) VALUES ($1, $2, $3)
       ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
       WHERE idempotent_request.created_at < now() - make_interval(hours => ${KEEP_HOURS})
          OR (idempotent_request.status IS NULL AND idempotent_request.fingerprint = excluded.fingerprint
              AND idempotent_request.created_at < now() - make_interval(secs => ${ABANDONED_SECONDS}))`,
      [accountId, key, fingerprint],
    );
    if (rowCount === 1) return 'claimed';
    const { rows } = await this.database.query<{
      fingerprint: Buffer;
      status: number | null;
      content_type: string | null;
      body: string | null;
    }>('SELECT fingerprint, status, content_type, body FROM idempotent_request WHERE account_id = $1 AND key = $2', [accountId, key]);
    const [first] = rows;
    if (!first) return 'in flight';
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    return first.status === null ? 'in flight' : { status: first.status, content_type: first.content_type, body: first.body };
  }

  async keep(accountId: string, key: string, { status, content_type, body }: StoredAnswer): Promise<void> {
    await this.database.query(
      'UPDATE idempotent_request SET status = $3, content_type = $4, body = $5 WHERE account_id = $1 AND key = $2',
      [accountId, key, status, content_type, body],
    );
  }

  /** The request came to nothing: the key may be used again. */
  async release(accountId: string, key: string): Promise<void> {
    await this.database.query('DELETE FROM idempotent_request WHERE account_id = $1 AND key = $2 AND status IS NULL', [accountId, key]);
  }

  async forgetOld(): Promise<void> {
    await this.database.query(`DELETE FROM idempotent_request WHERE created_at < now() - make_interval(hours => ${KEEP_HOURS})`);
  }
}
