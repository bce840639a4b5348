import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { newId } from '#contracts';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { type HeldKey, IdempotencyRepository, IdempotentRequest } from './idempotency.repository.js';

describe('requests with an Idempotency-Key', () => {
  let db: FreshDatabase;
  let requests: IdempotencyRepository;
  const account = newId('user');
  const inProgress = { retryAfterSeconds: expect.any(Number) };
  const [mine, other] = [Buffer.from('mine'), Buffer.from('other')];

  beforeAll(async () => {
    db = await freshDatabase(schema);
    requests = new IdempotencyRepository(db.database, new SecretBox([randomBytes(32)]), createLog('test', 'silent'));
  });
  afterAll(() => db.drop());

  const hold = async (key: string, fingerprint = mine): Promise<HeldKey> => {
    const claim = await requests.claim(account, key, fingerprint);
    if (typeof claim === 'string' || !('held' in claim)) throw new Error(`the key is not free: ${JSON.stringify(claim)}`);
    return claim.held;
  };
  const age = (key: string, interval: string) =>
    db.database.query(
      'UPDATE idempotent_request SET created_at = created_at - $2::interval, first_at = first_at - $2::interval WHERE key = $1',
      [key, interval],
    );

  /** As if the seconds had passed since the key was claimed. */
  const pass = async (key: string, seconds: number): Promise<void> => {
    await db.database.query('UPDATE idempotent_request SET leased_until = leased_until - make_interval(secs => $2) WHERE key = $1', [
      key,
      seconds,
    ]);
    const now = performance.now() + seconds * 1000;
    jest.spyOn(performance, 'now').mockReturnValue(now);
  };
  afterEach(() => void jest.restoreAllMocks());

  it('are claimed by exactly one of several at once', async () => {
    const claims = await Promise.all([1, 2, 3].map(() => requests.claim(account, 'at once', mine)));
    expect(claims.filter((claim) => claim !== 'other payload' && 'retryAfterSeconds' in claim)).toHaveLength(2);
  });

  it('get the stored response, unless the payload differs', async () => {
    const stored = { status: 201, content_type: 'application/json', body: '{"a":1}' };
    await requests.keep(await hold('stored'), stored);
    expect((await db.database.rows(IdempotentRequest).findOneByOrFail({ key: 'stored' })).body).toMatch(/^sealed:/);
    const first = { accountId: account, key: 'stored', fingerprint: mine, firstAt: expect.any(Date) };
    expect(await requests.claim(account, 'stored', mine)).toEqual({ stored, first });
    expect(await requests.claim(account, 'stored', other)).toBe('other payload');
    expect(await requests.claim(newId('user'), 'stored', other)).toHaveProperty('held');
  });

  it('can be claimed again after a release, which never removes a response', async () => {
    const first = await hold('released');
    await requests.release(first);
    const second = await hold('released', other);
    expect(second.firstAt).toEqual(first.firstAt);
    await requests.keep(second, { status: 204, content_type: null, body: null });
    await requests.release(second);
    expect(await requests.claim(account, 'released', other)).toMatchObject({ stored: { status: 204, content_type: null, body: null } });
  });

  it('can be claimed again when the first request cannot be in progress any more, and it then has no effect on the later one', async () => {
    const first = await hold('abandoned');
    await pass('abandoned', 5);
    expect(await requests.claim(account, 'abandoned', mine)).toEqual(inProgress);
    await pass('abandoned', 5);
    const second = await hold('abandoned');
    await requests.release(first);
    await requests.keep(first, { status: 200, content_type: null, body: null });
    expect(await requests.claim(account, 'abandoned', mine)).toEqual(inProgress);
    await requests.keep(second, { status: 201, content_type: null, body: null });
    expect(await requests.claim(account, 'abandoned', mine)).toMatchObject({ stored: { status: 201 } });
  });

  it('can be claimed again if the first request came while the clock of the database was an hour ahead, and its gateway was killed', async () => {
    await hold('ahead');
    await pass('ahead', -3600);
    expect(await requests.claim(account, 'ahead', mine)).toHaveProperty('held');
  });

  it('cannot be claimed while a process renews its leases, however long they take', async () => {
    const first = await hold('long');
    for (let n = 0; n < 3; n++) {
      await pass('long', 6);
      await requests.renew();
    }
    expect(await requests.claim(account, 'long', mine)).toEqual(inProgress);
    await requests.keep(first, { status: 200, content_type: null, body: null });
    expect(await requests.claim(account, 'long', mine)).toMatchObject({ stored: { status: 200 } });
  });

  it('are not renewed if they have ended, are short, or last longer than any request', async () => {
    await requests.release(await hold('ended'));
    await hold('endless');
    const leases = () => db.database.rows(IdempotentRequest).find({ select: { key: true, leased_until: true }, order: { key: 'ASC' } });
    await pass('endless', 3600);
    await hold('short');
    const before = await leases();
    await requests.renew();
    expect(await leases()).toEqual(before);
  });

  it('report when a repeat finds the response, or a free key', async () => {
    await hold('when');
    await pass('when', 4);
    expect(await requests.claim(account, 'when', mine)).toEqual({ retryAfterSeconds: 6 });
    await pass('when', 5.5);
    expect(await requests.claim(account, 'when', mine)).toEqual({ retryAfterSeconds: 1 });
  });

  it('can be claimed again after a day, whatever the response', async () => {
    const first = await hold('expired');
    await requests.keep(first, { status: 200, content_type: null, body: null });
    await age('expired', '25 hours');
    expect((await hold('expired', other)).firstAt.getTime()).toBeGreaterThanOrEqual(first.firstAt.getTime());
  });

  it('are deleted when they are more than a day old', async () => {
    await requests.claim(account, 'old', mine);
    await requests.claim(account, 'new', mine);
    await db.database.query("UPDATE idempotent_request SET created_at = now() - interval '25 hours' WHERE key = 'old'");
    await requests.deleteOld();
    const left = await db.database.rows(IdempotentRequest).findBy({ account_id: account });
    expect(left.map(({ key }) => key)).not.toContain('old');
    expect(left.map(({ key }) => key)).toContain('new');
  });
});
