import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { newId } from '#contracts';
import { SecretBox } from '#secrets';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { IdempotencyRepository, IdempotentRequest } from './idempotency.repository.js';

describe('requests with an Idempotency-Key', () => {
  let db: FreshDatabase;
  let requests: IdempotencyRepository;
  const account = newId('user');
  const [mine, other] = [Buffer.from('mine'), Buffer.from('other')];

  beforeAll(async () => {
    db = await freshDatabase(schema);
    requests = new IdempotencyRepository(db.database, db.database.rows(IdempotentRequest), new SecretBox([randomBytes(32)]));
  });
  afterAll(() => db.drop());

  it('are claimed by exactly one of several at once', async () => {
    const claims = await Promise.all([1, 2, 3].map(() => requests.claim(account, 'at once', mine)));
    expect(claims.sort()).toEqual(['claimed', 'in flight', 'in flight']);
  });

  it('get the stored response, unless the payload differs', async () => {
    await requests.claim(account, 'stored', mine);
    const stored = { status: 201, content_type: 'application/json', body: '{"a":1}' };
    await requests.keep(account, 'stored', stored);
    expect((await db.database.rows(IdempotentRequest).findOneByOrFail({ key: 'stored' })).body).toMatch(/^sealed:/);
    expect(await requests.claim(account, 'stored', mine)).toEqual(stored);
    expect(await requests.claim(account, 'stored', other)).toBe('other payload');
    expect(await requests.claim(newId('user'), 'stored', other)).toBe('claimed');
  });

  it('can be claimed again after a release, which never removes a response', async () => {
    await requests.claim(account, 'released', mine);
    await requests.release(account, 'released');
    expect(await requests.claim(account, 'released', other)).toBe('claimed');
    await requests.keep(account, 'released', { status: 204, content_type: null, body: null });
    await requests.release(account, 'released');
    expect(await requests.claim(account, 'released', other)).toEqual({ status: 204, content_type: null, body: null });
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
