import { Injectable } from '@nestjs/common';
import type { Id, UserId } from '#contracts';
import { Database, type Session } from '#database';
import type { AccountRow, ApiKeyRow, Usage } from './account.entity.js';

/** Accounts, their keys and what they have used. */
@Injectable()
export class AccountsRepository {
  constructor(private readonly database: Database) {}

  /** The accounts that keys with these hashes (hex) belong to, unless the key is revoked; by hash. */
  async findByKeyHashes(hashes: string[]): Promise<Map<string, AccountRow>> {
    const { rows } = await this.database.query<AccountRow & { hash: string }>({
      name: 'account-by-key',
      text: `SELECT encode(k.hash, 'hex') AS hash, a.id, a.email, a.username, a.billing_period_start, a.billing_period_end, a.created_at
             FROM api_key k JOIN account a ON a.id = k.account_id
             WHERE k.hash = ANY (SELECT decode(hex, 'hex') FROM unnest($1::text[]) AS hex) AND k.revoked_at IS NULL`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...account }) => [hash, account]));
  }

  async find(id: string): Promise<AccountRow | undefined> {
    const { rows } = await this.database.query<AccountRow>('SELECT * FROM account WHERE id = $1', [id]);
    return rows[0];
  }

  async list(): Promise<AccountRow[]> {
    const { rows } = await this.database.query<AccountRow>('SELECT * FROM account ORDER BY id');
    return rows;
  }

  async create(session: Session, account: Pick<AccountRow, 'id' | 'email' | 'username'>): Promise<void> {
    await session.query('INSERT INTO account (id, email, username) VALUES ($1, $2, $3)', [account.id, account.email, account.username]);
  }

  /** Whether errors are told by mail. False when there is no such account. */
  async setErrorMail(id: UserId, on: boolean): Promise<boolean> {
    const { rowCount } = await this.database.query('UPDATE account SET error_mail = $2 WHERE id = $1', [id, on]);
    return rowCount === 1;
  }

  /** False when there is such a key already, perhaps another account's. */
  async addKey(session: Session, key: Pick<ApiKeyRow, 'id' | 'account_id' | 'hint' | 'name'> & { hash: Buffer }): Promise<boolean> {
    const { rowCount } = await session.query(
      'INSERT INTO api_key (id, account_id, hash, hint, name) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (hash) DO NOTHING',
      [key.id, key.account_id, key.hash, key.hint, key.name],
    );
    return rowCount === 1;
  }

  async listKeys(accountId: UserId): Promise<ApiKeyRow[]> {
    const { rows } = await this.database.query<ApiKeyRow>(
      'SELECT id, account_id, hint, name, created_at, revoked_at FROM api_key WHERE account_id = $1 ORDER BY id',
      [accountId],
    );
    return rows;
  }

  /** Those of the hashes (hex) whose keys are not revoked. */
  async validHashes(hashes: string[]): Promise<string[]> {
    const { rows } = await this.database.query<{ hash: string }>({
      name: 'valid-hashes',
      text: `SELECT encode(hash, 'hex') AS hash FROM api_key
             WHERE hash = ANY (SELECT decode(h, 'hex') FROM unnest($1::text[]) AS h) AND revoked_at IS NULL`,
      values: [hashes],
    });
    return rows.map(({ hash }) => hash);
  }

  /** False when there is no such key; one that is revoked already stays so. */
  async revokeKey(id: Id<'apiKey'>): Promise<boolean> {
    const { rowCount } = await this.database.query('UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1', [id]);
    return rowCount === 1;
  }

  /** What the account has used since a day (UTC), that day included. */
  async usedSince(accountId: UserId, day: Date): Promise<Usage> {
    const { rows } = await this.database.query<Usage>({
      name: 'usage-since',
      text: `SELECT coalesce(sum(compute_ms), 0)::bigint AS compute_ms, coalesce(sum(invocations), 0)::bigint AS invocations
             FROM usage WHERE account_id = $1 AND day >= $2::date`,
      values: [accountId, day.toISOString().slice(0, 10)],
    });
    return rows[0] ?? { compute_ms: 0, invocations: 0 };
  }
}
