import type { Id, UserId } from '#contracts';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import type { AccountRow, ApiKeyRow, OpenedAccount, Usage } from './account.entity.js';
import type { KeysetPage } from '#database';
import type { AccountsRepository } from './accounts.repository.js';

type StoredKey = ApiKeyRow & { hash: Buffer };

/** In place of AccountsRepository. */
export class AccountsInMemory implements Pick<
  AccountsRepository,
  | 'findByKeyHashes'
  | 'find'
  | 'list'
  | 'create'
  | 'findByEmail'
  | 'setErrorMail'
  | 'setSuspended'
  | 'remove'
  | 'addKey'
  | 'countKeys'
  | 'replaceKey'
  | 'listKeys'
  | 'validHashes'
  | 'revokeKey'
  | 'usedSince'
  | 'pageOfKeys'
  | 'noteUses'
  | 'revokeKeyOf'
  | 'noteOperatorUse'
  | 'trimRevokedKeys'
> {
  readonly accounts: (AccountRow & { error_mail: boolean })[] = [];
  readonly keys: StoredKey[] = [];
  /** By account and day, `2026-01-31`. */
  readonly usage: { accountId: UserId; day: string; used: Usage }[] = [];

  async findByKeyHashes(hashes: string[]): Promise<Map<string, OpenedAccount>> {
    const valid = this.keys.filter(({ hash, revoked_at }) => revoked_at === null && hashes.includes(hash.toString('hex')));
    return new Map(
      valid.flatMap(({ hash, account_id, id: key_id, scope }) =>
        this.accounts
          .filter(({ id }) => id === account_id)
          .map((account): [string, OpenedAccount] => [hash.toString('hex'), { ...account, key_id, scope }]),
      ),
    );
  }

  async find(id: string): Promise<AccountRow | undefined> {
    return this.accounts.find((account) => account.id === id);
  }

  async list(): Promise<AccountRow[]> {
    return [...this.accounts];
  }

  async findByEmail(_session: unknown, email: string): Promise<UserId | undefined> {
    return this.accounts.find((account) => account.email.toLowerCase() === email.toLowerCase())?.id;
  }

  async create(_session: unknown, { id, email, username }: Pick<AccountRow, 'id' | 'email' | 'username'>): Promise<void> {
    const period = { billing_period_start: null, billing_period_end: null };
    this.accounts.push({ id, email, username, ...period, created_at: new Date(), error_mail: true, suspended_at: null });
  }

  async setErrorMail(id: UserId, on: boolean): Promise<boolean> {
    const account = this.accounts.find((each) => each.id === id);
    if (account) account.error_mail = on;
    return account !== undefined;
  }

  async setSuspended(id: UserId, suspended: boolean): Promise<void> {
    const account = this.accounts.find((each) => each.id === id);
    if (account) account.suspended_at = suspended ? (account.suspended_at ?? new Date()) : null;
  }

  async remove(_session: unknown, id: UserId): Promise<number> {
    const without = <T>(rows: T[], isOwned: (row: T) => boolean) => rows.splice(0, rows.length, ...rows.filter((row) => !isOwned(row)));
    const before = this.keys.length;
    without(this.keys, ({ account_id }) => account_id === id);
    without(this.usage, ({ accountId }) => accountId === id);
    without(this.accounts, (account) => account.id === id);
    return before - this.keys.length;
  }

  async addKey(
    _session: unknown,
    key: Pick<StoredKey, 'id' | 'account_id' | 'prefix' | 'name' | 'scope' | 'hash'> &
      Partial<Pick<StoredKey, 'created_at' | 'by_operator'>>,
  ): Promise<boolean> {
    if (this.keys.some(({ id, hash }) => id === key.id || hash.equals(key.hash))) return false;
    this.keys.push({ created_at: new Date(), by_operator: true, ...key, last_used_at: null, revoked_at: null });
    return true;
  }

  async countKeys(_session: unknown, accountId: UserId): Promise<number> {
    return this.keys.filter(({ account_id, revoked_at }) => account_id === accountId && revoked_at === null).length;
  }

  async noteOperatorUse(hash: Buffer): Promise<void> {
    for (const key of this.keys) key.by_operator ||= key.hash.equals(hash);
  }

  async trimRevokedKeys(): Promise<void> {}

  /** The request holds its Idempotency-Key. */
  async replaceKey({ accountId }: HeldKey, id: Id<'apiKey'>, { hash, prefix }: { hash: Buffer; prefix: string }): Promise<boolean> {
    const key = this.keys.find((each) => each.account_id === accountId && each.id === id && each.revoked_at === null);
    if (key) Object.assign(key, { hash, prefix });
    return key !== undefined;
  }

  async listKeys(accountId: UserId): Promise<ApiKeyRow[]> {
    return this.keys.filter(({ account_id }) => account_id === accountId);
  }

  async validHashes(hashes: string[]): Promise<string[]> {
    const valid = this.keys.filter(({ revoked_at }) => revoked_at === null).map(({ hash }) => hash.toString('hex'));
    return hashes.filter((hash) => valid.includes(hash));
  }

  async revokeKey(id: Id<'apiKey'>): Promise<boolean> {
    const key = this.keys.find((each) => each.id === id);
    if (key) key.revoked_at ??= new Date();
    return key !== undefined;
  }

  async pageOfKeys(accountId: UserId, { limit }: KeysetPage): Promise<{ rows: ApiKeyRow[]; total: number }> {
    const valid = this.keys.filter(({ account_id, revoked_at }) => account_id === accountId && revoked_at === null).reverse();
    return { rows: valid.slice(0, limit), total: valid.length };
  }

  async noteUses(uses: ReadonlyMap<Id<'apiKey'>, Date>): Promise<void> {
    for (const key of this.keys) key.last_used_at = uses.get(key.id) ?? key.last_used_at;
  }

  async revokeKeyOf(accountId: UserId, id: Id<'apiKey'>): Promise<boolean> {
    const key = this.keys.find((each) => each.id === id && each.account_id === accountId && each.revoked_at === null);
    if (key) key.revoked_at = new Date();
    return key !== undefined;
  }

  async usedSince(accountId: UserId, since: Date): Promise<Usage> {
    const days = this.usage.filter((each) => each.accountId === accountId && each.day >= since.toISOString().slice(0, 10));
    return {
      compute_ms: days.reduce((sum, { used }) => sum + used.compute_ms, 0),
      invocations: days.reduce((sum, { used }) => sum + used.invocations, 0),
    };
  }
}
