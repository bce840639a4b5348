import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { type Id, newId, type UserId } from '#contracts';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { type FreshDatabase, freshDatabase, untilLocked } from '#testing';
import { schema } from '../database/schema.js';
import { type HeldKey, IdempotencyRepository, IdempotentRequest } from '../idempotency/idempotency.repository.js';
import { UsageRow } from '../usage/usage.repository.js';
import { AccountRow, ApiKeyRow } from './account.entity.js';
import { AccountsRepository } from './accounts.repository.js';

const hashOf = (key: string): Buffer => createHash('sha256').update(key).digest();

describe('the accounts', () => {
  let db: FreshDatabase;
  let accounts: AccountsRepository;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    accounts = new AccountsRepository(db.database, db.database.rows(AccountRow), db.database.rows(ApiKeyRow));
  });
  afterAll(() => db.drop());

  async function account(): Promise<UserId> {
    const id = newId('user');
    await accounts.create(db.database, { id, email: `${id}@example.test`, username: 'name' });
    return id;
  }
  const addKey = (accountId: UserId, key: string, by_operator = true) => {
    const id = newId('apiKey');
    return accounts.addKey(db.database, {
      id,
      account_id: accountId,
      hash: hashOf(key),
      prefix: key.slice(0, 4),
      name: null,
      scope: 'write',
      by_operator,
    });
  };

  it('are found by their e-mail addresses, whatever the case, and one transaction at a time looks', async () => {
    const id = newId('user');
    const email = `Ada.${id}@example.test`;
    const createOnce = () =>
      db.database.transaction(async (transaction) => {
        if (await accounts.findByEmail(transaction, email.toLowerCase())) return false;
        await accounts.create(transaction, { id: newId('user'), email, username: 'Ada' });
        return true;
      });
    expect((await Promise.all([createOnce(), createOnce(), createOnce()])).filter(Boolean)).toEqual([true]);
  });

  it('have a number of keys that only one transaction at a time changes', async () => {
    const id = await account();
    const addWithin = (most: number) =>
      db.database.transaction(async (transaction) => {
        const key = randomUUID();
        await accounts.addKey(transaction, {
          id: newId('apiKey'),
          account_id: id,
          hash: hashOf(key),
          prefix: '',
          name: null,
          scope: 'write',
          by_operator: false,
        });
        if ((await accounts.countKeys(transaction, id)) > most) throw new Error('too many');
      });
    const added = await Promise.allSettled(Array.from({ length: 5 }, () => addWithin(2)));
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    const [first] = await accounts.listKeys(id);
    await accounts.revokeKeyOf(id, first!.id);
    await addWithin(2);
  });

  const byKey = async (key: string) => {
    const hash = hashOf(key).toString('hex');
    return (await accounts.findByKeyHashes([hash])).get(hash);
  };

  it('are authenticated by their keys until these are revoked', async () => {
    const id = await account();
    const key = randomUUID();
    expect(await addKey(id, key)).toBe(true);
    expect(await byKey(key)).toMatchObject({ id, username: 'name', billing_period_start: null, scope: 'write' });
    const [listed] = await accounts.listKeys(id);
    expect(Object.keys(listed!)).toEqual(['id', 'account_id', 'prefix', 'name', 'scope', 'created_at', 'last_used_at', 'revoked_at']);
    expect(await accounts.revokeKey(listed!.id)).toBe(true);
    const [revoked] = await accounts.listKeys(id);
    expect(await accounts.revokeKey(listed!.id)).toBe(true);
    expect(await accounts.listKeys(id)).toEqual([revoked]);
    expect(await byKey(key)).toBeUndefined();
    expect(await accounts.validHashes([hashOf(key).toString('hex')])).toEqual([]);
    expect(await accounts.revokeKey(newId('apiKey'))).toBe(false);
  });

  it('do not share keys: a key that another account has is not added', async () => {
    const key = randomUUID();
    expect(await addKey(await account(), key)).toBe(true);
    expect(await addKey(await account(), key)).toBe(false);
  });

  describe('with revoked keys', () => {
    let id: UserId;
    beforeEach(async () => void (id = await account()));

    const addRevoked = (count: number, byOperator: boolean, age: string) =>
      db.database.query(
        `INSERT INTO api_key (id, account_id, hash, prefix, revoked_at, by_operator)
         SELECT 'key_' || $1 || $3 || n, $1, sha256(($1 || $3 || n)::bytea), '', now() - $4::interval - n * interval '1 second', $3::boolean
         FROM generate_series(1, $2::int) AS n`,
        [id, count, String(byOperator), age],
      );
    const left = async () => (await accounts.listKeys(id)).map((key) => key.id.replace(`key_${id}`, ''));

    it('keep the last hundred that they have issued themselves, those of the operator, and those that are valid', async () => {
      await addRevoked(102, false, '1 hour');
      await addRevoked(1, true, '2 hours');
      await addKey(id, randomUUID(), false);
      await accounts.trimRevokedKeys(db.database, id);
      const keys = await left();
      expect(keys).toHaveLength(102);
      expect(keys).toEqual(expect.arrayContaining(['true1', 'false1', 'false100']));
    });

    it('keep them for 30 days, and those of the operator for good', async () => {
      await addRevoked(1, false, '29 days');
      await accounts.deleteOldKeys();
      expect(await left()).toEqual(['false1']);
      await addRevoked(1, true, '31 days');
      await db.database.query("UPDATE api_key SET revoked_at = now() - interval '31 days' WHERE account_id = $1", [id]);
      await accounts.deleteOldKeys();
      expect(await left()).toEqual(['true1']);
    });

    it('keep one that the operator uses, so that it is recognised after it was revoked', async () => {
      const key = randomUUID();
      await addKey(id, key, false);
      await accounts.noteOperatorUse(hashOf(key));
      const [listed] = await accounts.listKeys(id);
      await accounts.revokeKey(listed!.id);
      await db.database.query("UPDATE api_key SET revoked_at = now() - interval '31 days' WHERE account_id = $1", [id]);
      await accounts.deleteOldKeys();
      expect(await addKey(id, key)).toBe(false);
    });
  });

  describe('whose creation of a key is repeated', () => {
    let requests: IdempotencyRepository;
    beforeAll(() => {
      const [box, log] = [new SecretBox([randomBytes(32)]), createLog('test', 'silent')];
      requests = new IdempotencyRepository(db.database, box, log);
    });

    const claim = async (accountId: UserId): Promise<HeldKey> => {
      const claimed = await requests.claim(accountId, 'create a key', Buffer.from('payload'));
      if (typeof claimed === 'string' || !('held' in claimed)) throw new Error('the key is not free');
      return claimed.held;
    };
    const endLease = (accountId: UserId) =>
      db.database.rows(IdempotentRequest).update({ account_id: accountId }, { leased_until: new Date(0) });
    const replace = async (held: HeldKey, id: Id<'apiKey'>, key: string) =>
      accounts.replaceKey(held, id, { hash: hashOf(key), prefix: key.slice(0, 4) });

    it('replace it under its id, unless it is revoked or belongs to another account', async () => {
      const [id, other, key, next] = [await account(), await account(), randomUUID(), randomUUID()];
      await addKey(id, key);
      const [listed] = await accounts.listKeys(id);
      const [held, heldByOther] = [await claim(id), await claim(other)];
      expect([await replace(heldByOther, listed!.id, next), await replace(held, listed!.id, next)]).toEqual([false, true]);
      expect([await byKey(key), await byKey(next)]).toMatchObject([undefined, { id, key_id: listed!.id }]);
      await accounts.revokeKey(listed!.id);
      expect(await replace(held, listed!.id, next)).toBe(false);
    });

    it('do not replace the key of a later request', async () => {
      const [id, received] = [await account(), randomUUID()];
      const frozen = await claim(id);
      await endLease(id);
      const later = await claim(id);
      await addKey(id, received);
      const [listed] = await accounts.listKeys(id);
      expect(await replace(frozen, listed!.id, randomUUID())).toBe(false);
      await requests.keep(later, { status: 200, content_type: null, body: null });
      expect([await replace(frozen, listed!.id, randomUUID()), await replace(later, listed!.id, randomUUID())]).toEqual([false, false]);
      expect(await byKey(received)).toMatchObject({ id });
    });

    it('do not begin a later request while they replace the key', async () => {
      const [id, lost, next] = [await account(), randomUUID(), randomUUID()];
      await addKey(id, lost);
      const [listed] = await accounts.listKeys(id);
      const held = await claim(id);
      await endLease(id);
      const work: Promise<unknown>[] = [];
      await db.database.transaction(async (transaction) => {
        await transaction.query('SELECT FROM api_key WHERE id = $1 FOR UPDATE', [listed!.id]);
        work.push(replace(held, listed!.id, next));
        await untilLocked(db);
        work.push(claim(id));
        // the claim waits for the replacement
        await untilLocked(db, 2);
      });
      expect(await Promise.all(work)).toEqual([true, expect.objectContaining({ accountId: id })]);
    });
  });

  it('are listed with every column in a fixed order', async () => {
    const id = await account();
    const found = await accounts.find(id);
    expect(Object.keys(found!)).toEqual([
      'id',
      'email',
      'username',
      'billing_period_start',
      'billing_period_end',
      'created_at',
      'error_mail',
      'suspended_at',
    ]);
    expect(await accounts.list()).toContainEqual(found);
    expect(await accounts.find(newId('user'))).toBeUndefined();
  });

  it('store whether they want error mail; an unknown account is reported', async () => {
    const id = await account();
    expect(await accounts.setErrorMail(id, false)).toBe(true);
    expect(await accounts.find(id)).toMatchObject({ error_mail: false });
    expect(await accounts.setErrorMail(newId('user'), false)).toBe(false);
  });

  it('are suspended since the first time, and resumed; their keys are not valid meanwhile', async () => {
    const id = await account();
    const key = randomUUID();
    await addKey(id, key);
    const valid = async () => (await accounts.validHashes([hashOf(key).toString('hex')])).length;
    expect([await byKey(key), await valid()]).toMatchObject([{ suspended_at: null }, 1]);
    await accounts.setSuspended(id, true);
    const { suspended_at: since } = (await byKey(key))!;
    await accounts.setSuspended(id, true);
    expect([since, await byKey(key), await valid()]).toMatchObject([expect.any(Date), { id, suspended_at: since }, 0]);
    await accounts.setSuspended(id, false);
    expect([await byKey(key), await valid()]).toMatchObject([{ suspended_at: null }, 1]);
  });

  it('return their usage as the sum over days', async () => {
    const id = await account();
    await db.database.rows(UsageRow).insert([
      { account_id: id, day: '2026-01-01', compute_ms: 1, invocations: 1 },
      { account_id: id, day: '2026-01-02', compute_ms: 2 ** 40, invocations: 2 },
      { account_id: id, day: '2026-01-03', compute_ms: 3, invocations: 3 },
    ]);
    expect(await accounts.usedSince(id, new Date('2026-01-02T23:00:00Z'))).toEqual({ compute_ms: 2 ** 40 + 3, invocations: 5 });
    expect(await accounts.usedSince(id, new Date('2027-01-01'))).toEqual({ compute_ms: 0, invocations: 0 });
  });
});
