import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { Id, UserId } from '#contracts';
import { Database } from '#database';
import { createLog, LOG } from '#observability';
import { GatewayConfig } from '../gateway.config.js';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import type { AccountRow } from './account.entity.js';
import { AccountsInMemory } from './accounts-in-memory-for-tests.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { apiKeyHash, newApiKey } from './api-key.js';
import { KeyUses } from './key-uses.js';

const MISSING = 'u_000000000000000009';

const heldBy = (accountId: UserId): HeldKey => ({
  accountId,
  key: 'k',
  fingerprint: Buffer.alloc(0),
  claimedAt: '2026-01-31',
  firstAt: new Date(),
});

describe('accounts and their API keys', () => {
  let stored: AccountsInMemory;
  let service: AccountsService;
  let uses: KeyUses;

  const transaction = async (work: (session: unknown) => unknown) => {
    const keys = [...stored.keys];
    try {
      return await work({});
    } catch (error) {
      stored.keys.splice(0, stored.keys.length, ...keys);
      throw error;
    }
  };

  const start = async (variables: Record<string, string> = {}) => {
    const module = await Test.createTestingModule({
      providers: [
        AccountsService,
        KeyUses,
        { provide: LOG, useValue: createLog('test', 'silent') },
        { provide: AccountsRepository, useValue: stored },
        { provide: Database, useValue: { transaction } },
        { provide: GatewayConfig, useValue: GatewayConfig.read(variables) },
      ],
    }).compile();
    uses = module.get(KeyUses);
    return module.get(AccountsService);
  };

  beforeEach(async () => {
    stored = new AccountsInMemory();
    service = await start();
  });

  it('authenticates a new account by its first key, and stores only a hash of the key', async () => {
    const { id, api_key } = await service.create({ email: 'ada@example.com' });
    expect(await service.authenticate(api_key)).toMatchObject({ id, email: 'ada@example.com', username: 'ada' });
    expect(JSON.stringify(stored.keys)).not.toContain(api_key);
  });

  it.each([
    ['unknown', () => newApiKey()],
    ['mistyped', () => 'slk_x'],
    ['empty', () => ''],
  ])('does not authenticate a key that is %s', async (_, key) => {
    await service.create({ email: 'ada@example.com' });
    expect(await service.authenticate(key())).toBeUndefined();
  });

  it.each<[string, keyof AccountsInMemory, (account: AccountRow, apiKey: string) => Promise<unknown>]>([
    ['authenticate', 'findByKeyHashes', (_, apiKey) => service.authenticate(apiKey)],
    ['describe the account', 'usedSince', (account, apiKey) => service.describe(account, apiKey)],
    ['list keys', 'pageOfKeys', ({ id }) => service.pageOfKeys(id, { limit: 1 })],
    ['issue a key', 'addKey', ({ id }) => service.issueKey(id, {})],
    ['revoke a key', 'revokeKeyOf', ({ id }) => service.revokeKeyOf(id, 'key_1')],
  ])('does not wait for more than ten seconds for the database to %s', async (_, statement, work) => {
    const { api_key } = await service.create({ email: 'ada@example.com' });
    jest.useFakeTimers();
    try {
      Object.assign(stored, { [statement]: () => new Promise(() => {}) });
      const failure = work(stored.accounts[0]!, api_key).catch((error: unknown) => error);
      await jest.advanceTimersByTimeAsync(10_000);
      expect(await failure).toMatchObject({ code: 'unavailable', details: { reason: 'the database does not respond' } });
    } finally {
      jest.useRealTimers();
    }
  });

  it('does not create a second account with an e-mail address, in whatever case', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    await expect(service.create({ email: 'Ada@Example.com' })).rejects.toMatchObject({
      code: 'conflict',
      message: `account ${id} already has the e-mail address Ada@Example.com`,
    });
    expect(stored.accounts).toHaveLength(1);
  });

  it('does not create an account with a key that is in use', async () => {
    await service.create({ email: 'ada@example.com', apiKey: 'chosen-by-ada' });
    await expect(service.create({ email: 'bob@example.com', apiKey: 'chosen-by-ada' })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('issues a key with a scope, shows when it was last used, and stores that for many requests at once', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    const { key, ...issued } = await service.issueKey(id, { name: 'dashboard', scope: 'read' });
    expect(issued).toMatchObject({ name: 'dashboard', scope: 'read', prefix: key.slice(0, 8), last_used_at: null });
    for (let n = 0; n < 3; n++) expect(await service.authenticate(key)).toMatchObject({ id, scope: 'read' });
    expect(stored.keys.map(({ last_used_at }) => last_used_at)).toEqual([null, null]);
    expect((await service.pageOfKeys(id, { limit: 10 })).data[0]).toMatchObject({ ...issued, last_used_at: expect.any(Number) });
    await uses.write();
    expect(stored.keys.map(({ last_used_at }) => last_used_at)).toEqual([null, expect.any(Date)]);
  });

  it('replaces the key that nobody has received when its creation is repeated', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    const lost = await service.issueKey(id, { name: 'ci', scope: 'read' }, 'key_1', heldBy(id));
    const received = await service.issueKey(id, { name: 'ci', scope: 'read' }, 'key_1', heldBy(id));
    expect(received).toMatchObject({ id: 'key_1', scope: 'read', prefix: received.key.slice(0, 8) });
    expect(await service.authenticate(received.key)).toMatchObject({ id, scope: 'read' });
    expect(await service.authenticate(lost.key)).toBeUndefined();
    expect(stored.keys).toHaveLength(2);
    await service.revokeKey('key_1');
    await expect(service.issueKey(id, {}, 'key_1', heldBy(id))).rejects.toMatchObject({ code: 'conflict' });
  });

  it('does not replace a key when the request does not hold its Idempotency-Key any more', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    const received = await service.issueKey(id, {}, 'key_1', heldBy(id));
    stored.replaceKey = async () => false;
    await expect(service.issueKey(id, {}, 'key_1', heldBy(id))).rejects.toMatchObject({
      code: 'conflict',
      message: 'API key key_1 was revoked, or a later request with this Idempotency-Key has created it',
    });
    expect(await service.authenticate(received.key)).toMatchObject({ id });
  });

  it('issues no more than a hundred keys of an account, until one is revoked', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    for (let n = 2; n <= 100; n++) await service.issueKey(id, {}, `key_${n}`);
    await expect(service.issueKey(id, {})).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('100 API keys') });
    expect(stored.keys).toHaveLength(100);
    // a repeated request adds none
    expect(await service.issueKey(id, {}, 'key_100', heldBy(id))).toMatchObject({ id: 'key_100' });
    await service.revokeKey('key_2');
    expect(await service.issueKey(id, {}, 'key_101')).toMatchObject({ id: 'key_101' });
  });

  it('stores the uses of keys later if the database fails', async () => {
    const { id, api_key } = await service.create({ email: 'ada@example.com' });
    await service.authenticate(api_key);
    const { noteUses } = stored;
    stored.noteUses = () => Promise.reject(new Error('away'));
    await uses.write();
    stored.noteUses = noteUses;
    await uses.write();
    expect((await stored.listKeys(id))[0]?.last_used_at).toEqual(expect.any(Date));
  });

  it('does not show the key to a caller whose key may not read secrets', async () => {
    const { api_key } = await service.create({ email: 'ada@example.com' });
    const account = (await service.authenticate(api_key))!;
    expect(await service.describe(account, api_key, 'read')).not.toHaveProperty('api_key');
    expect(await service.describe(account, api_key)).toMatchObject({ api_key });
  });

  it('revokes one of several keys; the others stay valid', async () => {
    const { id, api_key: first } = await service.create({ email: 'ada@example.com' });
    const { id: keyId, api_key: second } = await service.createKey(id, 'laptop');
    expect((await service.listKeys(id)).map(({ name }) => name)).toEqual([null, 'laptop']);
    await service.revokeKey(keyId);
    expect(await service.stillValid(new Set([first, second, newApiKey()]))).toEqual(new Set([first]));
    expect(await service.authenticate(second)).toBeUndefined();
    // revoking it again is not an error
    await service.revokeKey(keyId);
  });

  it.each<[string, (id: UserId, keyId: Id<'apiKey'>) => Promise<unknown>, object | undefined]>([
    ['revokes a key', (_, keyId) => service.revokeKey(keyId), undefined],
    ['revokes a key of its account', (id, keyId) => service.revokeKeyOf(id, keyId), undefined],
    ['suspends an account', (id) => service.setSuspended(id, true), { suspended_at: expect.any(Date) }],
  ])('%s, and resolves when every gateway knows it', async (_, end, known) => {
    const other = await start();
    const { id } = await service.create({ email: 'ada@example.com' });
    const { id: keyId, api_key } = await service.createKey(id, 'laptop');
    expect(await other.authenticate(api_key)).toMatchObject({ suspended_at: null });
    await end(id, keyId);
    expect(await other.authenticate(api_key)).toEqual(known && expect.objectContaining(known));
  });

  it.each<[string, (accounts: AccountsService) => Promise<unknown>]>([
    ['a key for an account that does not exist', (accounts) => accounts.createKey(MISSING, null)],
    ['the keys of an account that does not exist', (accounts) => accounts.listKeys(MISSING)],
    ['error mail of an account that does not exist', (accounts) => accounts.setErrorMail(MISSING, false)],
    ['a key that does not exist', (accounts) => accounts.revokeKey('ak_000000000000000009')],
    ['an account by a malformed id', (accounts) => accounts.listKeys("' OR 1=1")],
    ['a key by a malformed id', (accounts) => accounts.revokeKey('laptop')],
  ])('does not find %s', async (_, call) => {
    await expect(call(service)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('turns the error mail of an account off, and on again', async () => {
    const { id } = await service.create({ email: 'ada@example.com' });
    await service.setErrorMail(id, false);
    expect(stored.accounts[0]?.error_mail).toBe(false);
    await service.setErrorMail(id, true);
    expect(stored.accounts[0]?.error_mail).toBe(true);
  });

  describe('the account of the first start', () => {
    const bootstrap = (apiKey?: string) => service.bootstrap({ email: 'admin@example.com', apiKey });

    it('is created only by the first start, which returns its key', async () => {
      const first = await bootstrap();
      expect(first).toMatchObject({ created: true, api_key: expect.stringMatching(/^slk_/) });
      expect(await bootstrap()).toEqual({ id: first.id, email: 'admin@example.com', api_key: null, created: false });
      expect(stored.accounts).toHaveLength(1);
    });

    it('can also be used with a key that the operator chooses later', async () => {
      const { api_key: first } = await bootstrap();
      expect(await bootstrap('chosen-later')).toMatchObject({ created: false, api_key: 'chosen-later' });
      expect(await bootstrap('chosen-later')).toMatchObject({ created: false, api_key: 'chosen-later' });
      for (const key of [first!, 'chosen-later']) expect(await service.authenticate(key)).toMatchObject({ email: 'admin@example.com' });
      expect(stored.keys).toHaveLength(2);
    });

    it('cannot be used again with a revoked key', async () => {
      await bootstrap('chosen');
      await service.revokeKey(stored.keys[0]!.id);
      expect(await bootstrap('chosen')).toMatchObject({ api_key: null, created: false });
      expect(await service.authenticate('chosen')).toBeUndefined();
    });

    it.each<[string, () => Promise<string>]>([
      ['is created with it', async () => (await bootstrap()).api_key!],
      ['is used with it', async () => (await bootstrap('chosen')).api_key!],
      ['gets it from the operator', async () => (await service.createKey((await bootstrap()).id, null)).api_key],
      [
        'is used with one that a user has issued',
        async () => {
          const { key } = await service.issueKey((await bootstrap()).id, {});
          return (await bootstrap(key)).api_key!;
        },
      ],
    ])('keeps the row of its key, by which a revoked one is recognised: it %s', async (_, keyOf) => {
      const key = await keyOf();
      expect(stored.keys.find(({ hash }) => hash.equals(apiKeyHash(key)))).toMatchObject({ by_operator: true });
    });

    it('does not give its key to another account after it was deleted', async () => {
      const { id } = await bootstrap('chosen');
      const ada = await service.create({ email: 'ada@example.com' });
      await stored.remove({}, id);
      expect(await bootstrap('chosen')).toEqual({ id: ada.id, email: 'ada@example.com', api_key: null, created: false });
      expect(await service.listKeys(ada.id)).toHaveLength(1);
      await service.create({ email: 'Admin@Example.com' });
      expect(await bootstrap('chosen')).toMatchObject({ email: 'Admin@Example.com', api_key: 'chosen', created: false });
    });
  });

  describe('the description of an account', () => {
    const today = new Date().toISOString().slice(0, 10);
    let account: AccountRow;
    const use = (day: string, compute_ms: number, invocations: number) =>
      stored.usage.push({ accountId: account.id, day, used: { compute_ms, invocations } });
    const describeIt = async (accounts = service) => accounts.describe(account, 'the-key');

    beforeEach(async () => {
      const { id } = await service.create({ email: 'ada@example.com', username: 'Ada' });
      account = (await stored.find(id))!;
      use('2020-01-01', 5000, 5);
      use(today, 1200, 3);
      stored.usage.push({ accountId: MISSING, day: today, used: { compute_ms: 1, invocations: 1 } });
    });

    it('shows the usage of a free account today, and the key that authenticated the request', async () => {
      expect(await describeIt()).toEqual({
        ...{ id: account.id, username: 'Ada', email: 'ada@example.com', api_key: 'the-key' },
        ...{ daily_compute_time_quota: 2_147_483_647, daily_compute_time_used: 1200 },
        ...{ daily_invocations_quota: 2_147_483_647, daily_invocations_used: 3 },
      });
    });

    it('shows the quotas that the operator has set', async () => {
      const limited = await start({ SLUICE_QUOTAS: 'free', SLUICE_DAILY_INVOCATIONS: '1000', SLUICE_DAILY_COMPUTE_MS: '60000' });
      expect(await describeIt(limited)).toMatchObject({ daily_invocations_quota: 1000, daily_compute_time_quota: 60_000 });
    });

    it('shows the billing period of a paid account, with its usage in that period', async () => {
      account.billing_period_start = new Date('2020-01-01T00:00:00.900Z');
      account.billing_period_end = new Date('2040-01-01T00:00:00Z');
      expect(await describeIt()).toEqual({
        ...{ id: account.id, username: 'Ada', email: 'ada@example.com' },
        ...{ billing_period_start_ts: 1_577_836_800, billing_period_end_ts: 2_208_988_800, billing_period_invocations: 8 },
      });
    });
  });
});
