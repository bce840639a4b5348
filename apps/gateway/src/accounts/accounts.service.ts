import { Injectable } from '@nestjs/common';
import {
  cursorOf,
  type Id,
  idOfCursor,
  isId,
  newId,
  NotFound,
  type Page,
  type PageRequest,
  pageOf,
  SluiceError,
  type UserId,
} from '#contracts';
import { Database } from '#database';
import { inTime } from '../database/in-time.js';
import { GatewayConfig } from '../gateway.config.js';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import type { AccountRow, ApiKeyRow, KeyScope } from './account.entity.js';
import { AccountsRepository } from './accounts.repository.js';
import { apiKeyHash, apiKeyPrefix, isMistypedKey, newApiKey } from './api-key.js';
import { type ApiKey, apiKeyOf, type CreateKeyBody, type CreatedApiKey } from './api-key.dto.js';
import { KeyUses } from './key-uses.js';
import { type KnownAccount, KnownAccounts, untilForgotten } from './known-accounts.js';
import { type User, userOf } from './user.dto.js';

/** An account and one of its keys, at the only time at which the key is known. */
export interface IssuedKey {
  id: UserId;
  email: string;
  api_key: string;
}

/** Of an account, without those that are revoked. */
const MAX_KEYS = 100;

@Injectable()
export class AccountsService {
  private readonly known = new KnownAccounts((hashes) => this.accounts.findByKeyHashes(hashes));

  constructor(
    private readonly accounts: AccountsRepository,
    private readonly database: Database,
    private readonly config: GatewayConfig,
    private readonly uses: KeyUses,
  ) {}

  /** The account of a key; undefined if the key is malformed, unknown or revoked. Throws Unavailable if the database does not respond. */
  async authenticate(key: string): Promise<KnownAccount | undefined> {
    const account = isMistypedKey(key) ? undefined : await inTime(this.accountOf(key));
    if (account) this.uses.note(account.key_id);
    return account;
  }

  /** Returns the keys that are still valid. */
  async stillValid(keys: ReadonlySet<string>): Promise<Set<string>> {
    const byHash = new Map([...keys].map((key) => [apiKeyHash(key).toString('hex'), key]));
    const valid = await this.accounts.validHashes([...byHash.keys()]);
    return new Set(valid.map((hash) => byHash.get(hash) ?? ''));
  }

  /** The account as `GET /users/me` returns it. It includes the key of the request unless that key may not read secrets. */
  async describe(account: AccountRow, apiKey: string, scope: KeyScope = 'write'): Promise<User> {
    const used = await inTime(this.accounts.usedSince(account.id, account.billing_period_start ?? new Date()));
    return userOf(account, { used, quotas: this.config.quotas, ...(scope === 'write' && { apiKey }) });
  }

  list(): Promise<AccountRow[]> {
    return this.accounts.list();
  }

  async find(id: string): Promise<AccountRow | undefined> {
    return isId('user', id) ? this.accounts.find(id) : undefined;
  }

  /** Suspends the account from now on, unless it is suspended, or lets it continue. */
  async setSuspended(id: UserId, suspended: boolean): Promise<void> {
    await this.accounts.setSuspended(id, suspended);
    await untilForgotten();
  }

  /** Creates an account with its first key: the given one, or a new one. */
  async create({ email, username, apiKey = newApiKey() }: { email: string; username?: string; apiKey?: string }): Promise<IssuedKey> {
    const id = newId('user');
    await this.database.transaction(async (transaction) => {
      const other = await this.accounts.findByEmail(transaction, email);
      if (other) throw new SluiceError('conflict', `account ${other} already has the e-mail address ${email}`);
      await this.accounts.create(transaction, { id, email, username: username ?? email.split('@')[0] ?? email });
      if (!(await this.addKey(id, apiKey, null, transaction))) throw new SluiceError('conflict', 'this API key is already in use');
    });
    return { id, email, api_key: apiKey };
  }

  async setErrorMail(id: string, on: boolean): Promise<void> {
    if (!isId('user', id) || !(await this.accounts.setErrorMail(id, on))) throw new NotFound('account', id);
  }

  /** Issues another key on behalf of the operator. */
  async createKey(
    accountId: string,
    name: string | null,
    scope: KeyScope = 'write',
  ): Promise<{ id: Id<'apiKey'>; account_id: UserId; api_key: string }> {
    const account = await this.find(accountId);
    if (!account) throw new NotFound('account', accountId);
    const { id, key } = await this.issue(account.id, { name, scope }, { id: newId('apiKey'), by_operator: true });
    return { id, account_id: account.id, api_key: key };
  }

  /**
   * Issues another key of the account; only this result contains the key itself.
   *
   * @param held the Idempotency-Key of the request, from which the id was made
   */
  issueKey(accountId: UserId, body: CreateKeyBody, id: Id<'apiKey'> = newId('apiKey'), held?: HeldKey): Promise<CreatedApiKey> {
    return this.issue(accountId, body, { id, held, by_operator: false });
  }

  private async issue(
    accountId: UserId,
    { name: givenName, scope: givenScope }: CreateKeyBody,
    { id, held, by_operator }: Pick<ApiKeyRow, 'id' | 'by_operator'> & { held?: HeldKey },
  ): Promise<CreatedApiKey> {
    const [name, scope] = [givenName ?? null, givenScope ?? 'write'];
    const key = newApiKey();
    // a list shows the same second
    const created_at = new Date();
    const adding = this.database.transaction(async (transaction) => {
      const added = await this.addKey(accountId, key, name, transaction, { id, scope, created_at, by_operator });
      if (added && (await this.accounts.countKeys(transaction, accountId)) > MAX_KEYS)
        throw new SluiceError('conflict', `the account has ${MAX_KEYS} API keys, which is the limit; revoke one of them`);
      await this.accounts.trimRevokedKeys(transaction, accountId);
      return added;
    });
    const isAdded = await inTime(adding);
    // a repeated request whose first attempt failed after all: nobody has received that key
    const replacement = { hash: apiKeyHash(key), prefix: apiKeyPrefix(key) };
    const isIssued = isAdded || (held && (await inTime(this.accounts.replaceKey(held, id, replacement))));
    if (!isIssued)
      throw new SluiceError('conflict', `API key ${id} was revoked, or a later request with this Idempotency-Key has created it`);
    return { ...apiKeyOf({ id, name, scope, prefix: apiKeyPrefix(key), created_at, last_used_at: null }), key };
  }

  async pageOfKeys(accountId: UserId, { limit, after, before }: PageRequest): Promise<Page<ApiKey>> {
    const page = { limit, after: idOfCursor('apiKey', 'after', after), before: idOfCursor('apiKey', 'before', before) };
    const { rows, total } = await inTime(this.accounts.pageOfKeys(accountId, page));
    const keys = rows.map((row) => apiKeyOf({ ...row, last_used_at: this.uses.last(row.id) ?? row.last_used_at }));
    return pageOf(keys, total, ({ id }) => cursorOf(id));
  }

  async revokeKeyOf(accountId: UserId, id: Id<'apiKey'>): Promise<void> {
    const isRevoked = await inTime(this.accounts.revokeKeyOf(accountId, id));
    // otherwise, too: another request may have just revoked it
    await untilForgotten();
    if (!isRevoked) throw new NotFound('API key', id);
  }

  async listKeys(accountId: string): Promise<ApiKeyRow[]> {
    const account = await this.find(accountId);
    if (!account) throw new NotFound('account', accountId);
    return this.accounts.listKeys(account.id);
  }

  async revokeKey(id: string): Promise<void> {
    if (!isId('apiKey', id) || !(await this.accounts.revokeKey(id))) throw new NotFound('API key', id);
    await untilForgotten();
  }

  /**
   * Creates the first account if there is none. A key that the operator chose is added to the account with this e-mail address, beside its other keys, unless
   * it was revoked. If that account was deleted, the key opens no other one. `api_key` is null if the key is not in use, or if there is none.
   */
  async bootstrap({
    email,
    apiKey,
  }: {
    email: string;
    apiKey?: string;
  }): Promise<{ id: UserId; email: string; api_key: string | null; created: boolean }> {
    const all = await this.accounts.list();
    const [oldest] = all;
    if (!oldest) return { ...(await this.create({ email, apiKey })), created: true };
    if (apiKey !== undefined) await this.accounts.noteOperatorUse(apiKeyHash(apiKey));
    const own = all.find((account) => account.email.toLowerCase() === email.toLowerCase());
    const works =
      apiKey !== undefined &&
      ((await this.accountOf(apiKey)) !== undefined || (own !== undefined && (await this.addKey(own.id, apiKey, null, this.database))));
    const first = own ?? oldest;
    return { id: first.id, email: first.email, api_key: works ? apiKey : null, created: false };
  }

  private accountOf(key: string): Promise<KnownAccount | undefined> {
    return this.known.get(apiKeyHash(key).toString('hex'));
  }

  private addKey(
    accountId: UserId,
    apiKey: string,
    name: string | null,
    session: Parameters<AccountsRepository['addKey']>[0],
    more: Partial<Pick<ApiKeyRow, 'id' | 'scope' | 'created_at' | 'by_operator'>> = {},
  ): Promise<boolean> {
    const defaults = { id: newId('apiKey'), scope: 'write' as const, created_at: new Date() };
    const key = { ...defaults, ...more, account_id: accountId, hash: apiKeyHash(apiKey), prefix: apiKeyPrefix(apiKey), name };
    return this.accounts.addKey(session, key);
  }
}
