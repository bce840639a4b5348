import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import type { Id, UserId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Session, type Transaction } from '#database';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import { AccountRow, ApiKeyRow, type OpenedAccount, type Usage } from './account.entity.js';

/** The rows of keys that users have issued and revoked: this many of an account, for this long. An account could otherwise fill the disk. */
const MOST_REVOKED = 100;
const KEEP_REVOKED_DAYS = 30;

/** The only writer of the tables `account` and `api_key`. It also reads what accounts have used. */
@Injectable()
export class AccountsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(AccountRow) private readonly accounts: Repository<AccountRow>,
    @InjectRepository(ApiKeyRow) private readonly keys: Repository<ApiKeyRow>,
  ) {}

  /**
   * The accounts that keys with these hashes (hex) belong to, unless the key is revoked; by hash. Prepared SQL: every request begins with it.
   */
  async findByKeyHashes(hashes: string[]): Promise<Map<string, OpenedAccount>> {
    const { rows } = await this.database.query<OpenedAccount & { hash: string }>({
      name: 'account-by-key',
      text: `SELECT encode(k.hash, 'hex') AS hash, a.id, a.email, a.username, a.billing_period_start, a.billing_period_end, a.created_at, a.suspended_at,
               k.id AS key_id, k.scope
             FROM api_key k JOIN account a ON a.id = k.account_id
             WHERE k.hash = ANY (SELECT decode(hex, 'hex') FROM unnest($1::text[]) AS hex) AND k.revoked_at IS NULL`,
      values: [hashes],
    });
    return new Map(rows.map(({ hash, ...account }) => [hash, account]));
  }

  async find(id: UserId): Promise<AccountRow | undefined> {
    return (await this.accounts.findOneBy({ id })) ?? undefined;
  }

  list(): Promise<AccountRow[]> {
    return this.accounts.find({ order: { id: 'ASC' } });
  }

  /** The account with this e-mail address, in whatever case. Until the transaction ends, no other transaction that calls this creates one. SQL, for the lock. */
  async findByEmail(transaction: Session, email: string): Promise<UserId | undefined> {
    await transaction.query("SELECT pg_advisory_xact_lock(hashtext('account.email'))");
    const { rows } = await transaction.query<{ id: UserId }>('SELECT id FROM account WHERE lower(email) = lower($1) LIMIT 1', [email]);
    return rows[0]?.id;
  }

  async create(session: Session, { id, email, username }: Pick<AccountRow, 'id' | 'email' | 'username'>): Promise<void> {
    await session.rows(AccountRow).insert({ id, email, username });
  }

  /** Whether the owner gets mail about errors. False if the account does not exist. */
  async setErrorMail(id: UserId, on: boolean): Promise<boolean> {
    const { affected } = await this.accounts.update({ id }, { error_mail: on });
    return affected === 1;
  }

  /** Suspends the account from now on, unless it is suspended, or lets it continue. */
  async setSuspended(id: UserId, suspended: boolean): Promise<void> {
    await this.accounts.update({ id }, { suspended_at: suspended ? () => 'coalesce(suspended_at, now())' : null });
  }

  /** Deletes an account that is suspended, and its keys. Returns the number of keys. */
  async remove(transaction: Transaction, id: UserId): Promise<number> {
    const { affected } = await transaction.rows(ApiKeyRow).delete({ account_id: id });
    await transaction.rows(AccountRow).delete({ id });
    return affected ?? 0;
  }

  /** Returns false if the key or its id exists already, perhaps for another account. */
  async addKey(
    session: Session,
    key: Pick<ApiKeyRow, 'id' | 'account_id' | 'hash' | 'prefix' | 'name' | 'scope'> &
      Partial<Pick<ApiKeyRow, 'created_at' | 'by_operator'>>,
  ): Promise<boolean> {
    const insert = session.rows(ApiKeyRow).createQueryBuilder().insert().values(key).orIgnore().returning('id');
    const inserted = await insert.execute();
    return (inserted.raw as object[]).length === 1;
  }

  /** The number of the account's keys that are not revoked. Until the transaction ends, another one that calls this waits. SQL, for the lock. */
  async countKeys(transaction: Session, accountId: UserId): Promise<number> {
    await transaction.query('SELECT FROM account WHERE id = $1 FOR NO KEY UPDATE', [accountId]);
    return transaction.rows(ApiKeyRow).countBy({ account_id: accountId, revoked_at: IsNull() });
  }

  /** Marks a key as one that the operator uses, revoked or not. */
  async noteOperatorUse(hash: Buffer): Promise<void> {
    await this.keys.update({ hash, by_operator: false }, { by_operator: true });
  }

  /** Deletes all but the last revoked keys that the account has issued itself. */
  async trimRevokedKeys(transaction: Session, accountId: UserId): Promise<void> {
    await transaction.query(
      `DELETE FROM api_key WHERE id IN (
         SELECT id FROM api_key WHERE account_id = $1 AND revoked_at IS NOT NULL AND NOT by_operator ORDER BY revoked_at DESC OFFSET ${MOST_REVOKED})`,
      [accountId],
    );
  }

  async deleteOldKeys(): Promise<void> {
    await this.database.query(`DELETE FROM api_key WHERE revoked_at < now() - interval '${KEEP_REVOKED_DAYS} days' AND NOT by_operator`);
  }

  /**
   * Gives the id another key, which has the name and scope of the former one. Returns false if the account does not have the id, if it is revoked, or if the
   * request does not hold its Idempotency-Key any more: a client may have received the key of a later request. Nobody may have received the former key: a
   * gateway that has used it accepts it for a moment. SQL, for the lock: no later request begins before the key is replaced.
   */
  async replaceKey(held: HeldKey, id: Id<'apiKey'>, { hash, prefix }: { hash: Buffer; prefix: string }): Promise<boolean> {
    const { rowCount } = await this.database.query(
      `UPDATE api_key SET hash = $3, prefix = $4 WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL AND EXISTS (
         SELECT FROM idempotent_request WHERE account_id = $1 AND key = $5 AND created_at = $6::timestamptz AND status IS NULL FOR SHARE)`,
      [held.accountId, id, hash, prefix, held.key, held.claimedAt],
    );
    return rowCount === 1;
  }

  listKeys(accountId: UserId): Promise<ApiKeyRow[]> {
    return this.keys.find({ where: { account_id: accountId }, order: { id: 'ASC' } });
  }

  /** The keys of an account that are not revoked. */
  pageOfKeys(accountId: UserId, page: KeysetPage): Promise<{ rows: ApiKeyRow[]; total: number }> {
    const valid = this.keys.createQueryBuilder('key').where('key.account_id = :accountId AND key.revoked_at IS NULL', { accountId });
    return readKeysetPage(valid, page);
  }

  /** Stores when keys were last used. SQL: one statement for all keys, and a slower replica never sets a time back. */
  async noteUses(uses: ReadonlyMap<Id<'apiKey'>, Date>): Promise<void> {
    await this.database.query({
      name: 'note-key-uses',
      text: `UPDATE api_key SET last_used_at = used.at FROM unnest($1::text[], $2::timestamptz[]) AS used (id, at)
             WHERE api_key.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)`,
      values: [[...uses.keys()], [...uses.values()]],
    });
  }

  /** Returns false if the account does not have this API key, or the key is already revoked. */
  async revokeKeyOf(accountId: UserId, id: Id<'apiKey'>): Promise<boolean> {
    const { affected } = await this.keys.update({ id, account_id: accountId, revoked_at: IsNull() }, { revoked_at: () => 'now()' });
    return affected === 1;
  }

  /** Returns the hashes (hex) whose keys are not revoked, and whose accounts are not suspended. SQL: queried periodically for all open live streams at once. */
  async validHashes(hashes: string[]): Promise<string[]> {
    const { rows } = await this.database.query<{ hash: string }>({
      name: 'valid-hashes',
      text: `SELECT encode(k.hash, 'hex') AS hash FROM api_key k JOIN account a ON a.id = k.account_id
             WHERE k.hash = ANY (SELECT decode(h, 'hex') FROM unnest($1::text[]) AS h) AND k.revoked_at IS NULL AND a.suspended_at IS NULL`,
      values: [hashes],
    });
    return rows.map(({ hash }) => hash);
  }

  /** Returns false if the key does not exist. Revoking a key twice changes nothing. */
  async revokeKey(id: Id<'apiKey'>): Promise<boolean> {
    const { affected } = await this.keys.update({ id }, { revoked_at: () => 'coalesce(revoked_at, now())' });
    return affected === 1;
  }

  /** The account's usage since a day (UTC), inclusive. SQL, for its sums. */
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
