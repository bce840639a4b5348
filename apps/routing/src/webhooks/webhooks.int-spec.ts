import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import { cursorOf, newId, type SluiceError, type UserId, type WebhookId } from '#contracts';
import { targetOf } from '../deliveries/receivers/targets.js';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { keyOfSecret, type SigningKey } from './signing-secret.js';

let routing: RoutingFixture;
let owner: UserId;
beforeAll(async () => {
  routing = await RoutingFixture.open();
});
afterAll(() => routing.close());
beforeEach(() => {
  owner = newId('user');
});

const errorOf = (promise: Promise<unknown>): Promise<SluiceError | undefined> =>
  promise.then(
    () => undefined,
    (error: SluiceError) => error,
  );
const create = (change: object = {}) =>
  routing.webhooksService.create({ id: newId('webhook'), owner_id: owner, url: 'https://example.com/', ...change });

describe('a webhook', () => {
  it('is made as it was sent', async () => {
    const made = await create({ url: 'HTTPS://Example.com:443/a?b', name: 'mine' });
    expect(made).toMatchObject({ user_id: owner, url: 'HTTPS://Example.com:443/a?b', name: 'mine', description: null, active: true });
    expect(Math.abs(made.created_at - Date.now() / 1000)).toBeLessThan(60);
    expect(made).not.toHaveProperty('rate_limit');
    expect(await routing.webhooksService.get({ owner_id: owner, id: made.id })).toEqual(made);
  });

  it('is made once, however often the command comes', async () => {
    const id = newId('webhook');
    const [once, twice] = [await create({ id, name: 'a' }), await create({ id, name: 'b' })];
    expect(twice).toEqual(once);
    expect((await errorOf(routing.webhooksService.create({ id, owner_id: newId('user'), url: 'http://a' })))?.code).toBe('not_found');
  });

  it('is refused beyond the limit of its account, also among others at the same time, but can be repeated', async () => {
    const first = { id: newId('webhook') };
    await create(first);
    const limit = jest.replaceProperty(routing.config, 'maxWebhooks', 3);
    try {
      const errors = await Promise.all(Array.from({ length: 10 }, () => errorOf(create())));
      expect(errors.filter((error) => error === undefined)).toHaveLength(2);
      expect(await errorOf(create())).toMatchObject({ code: 'conflict', message: 'this account has 3 webhooks; the limit is 3' });
      await create(first);
      await create({ owner_id: newId('user') });
    } finally {
      limit.restore();
    }
  });

  it('is suspended from the beginning if its account was suspended while it was being created, and continues with it', async () => {
    const active = async (id: WebhookId) => (await routing.webhooks.findTargets([id]))[0]?.active;
    await routing.webhooks.suspend(owner, true);
    const { id } = await create();
    expect([await active(id), await active((await create({ owner_id: newId('user') })).id)]).toEqual([false, true]);
    await routing.webhooksService.update({ owner_id: owner, id, active: true, url: 'https://example.com/changed' });
    expect([await active(id), await routing.webhooks.suspend(owner, true)]).toEqual([false, 0]);
    expect([await routing.webhooks.suspend(owner, false), await active(id)]).toEqual([1, true]);
    expect(await active((await create()).id)).toBe(true);
  });

  it('is suspended if its account is suspended while its creation is being stored', async () => {
    const webhooks = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => (n === 10 ? routing.webhooks.suspend(owner, true) : create())),
    );
    const ids = webhooks.flatMap((webhook) => (typeof webhook === 'number' ? [] : [webhook.id]));
    expect((await routing.webhooks.findTargets(ids)).filter(({ active }) => active)).toEqual([]);
  });

  it('gets its waiting deliveries at once when its account is resumed, with as many statements for several webhooks as for one', async () => {
    const resume = async (webhooks: number) => {
      owner = newId('user');
      // a webhook with a rate limit has a backlog
      for (let n = 0; n < webhooks; n++) await create({ rate_limit: 1 });
      await create();
      await routing.webhooks.suspend(owner, true);
      await routing.database.query("UPDATE backlog SET next_due = 'infinity', failed_probes = 3 WHERE owner_id = $1", [owner]);
      const query = jest.spyOn(pg.Client.prototype, 'query');
      expect(await routing.webhooks.suspend(owner, false)).toBe(webhooks + 1);
      const statements = query.mock.calls.length;
      query.mockRestore();
      const due = 'SELECT FROM backlog WHERE owner_id = $1 AND next_due <= now() AND failed_probes IS NULL';
      expect((await routing.database.query(due, [owner])).rowCount).toBe(webhooks);
      return statements;
    };
    expect(await resume(5)).toBe(await resume(1));
  });

  it('changes what is sent, and nothing else', async () => {
    const { id, ...made } = await create({ name: 'a', description: 'd' });
    const changed = await routing.webhooksService.update({ owner_id: owner, id, name: null, active: false, rate_limit: 5 });
    expect(changed).toMatchObject({ url: made.url, name: null, description: 'd', active: false, rate_limit: 5 });
    expect(await routing.webhooksService.update({ owner_id: owner, id, rate_limit: null, url: 'http://b' })).toMatchObject({
      active: false,
      url: 'http://b',
    });
    expect((await errorOf(routing.webhooksService.update({ owner_id: newId('user'), id, name: 'x' })))?.code).toBe('not_found');
  });

  it('is gone when it is deleted', async () => {
    const { id } = await create();
    expect((await errorOf(routing.webhooksService.delete({ owner_id: newId('user'), id })))?.code).toBe('not_found');
    await routing.webhooksService.delete({ owner_id: owner, id });
    for (const gone of [
      () => routing.webhooksService.get({ owner_id: owner, id }),
      () => routing.webhooksService.delete({ owner_id: owner, id }),
      () => routing.webhooksService.getSecret({ owner_id: owner, id }),
    ]) {
      expect((await errorOf(gone()))?.code).toBe('not_found');
    }
  });
});

describe('its secret', () => {
  it('is read, and rotated once per rotation, with the old one for a day', async () => {
    const { id } = await create();
    const { secret, ...rest } = await routing.webhooksService.getSecret({ owner_id: owner, id });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(rest).toEqual({});
    const rotated = await routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id: 'r1' });
    expect(rotated.secret).not.toBe(secret);
    expect(Math.abs(rotated.previous_expires_at - Date.now() / 1000 - 86_400)).toBeLessThan(60);
    expect(await routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id: 'r1' })).toEqual(rotated);
    expect(await routing.webhooksService.getSecret({ owner_id: owner, id })).toEqual({ secret: rotated.secret });
    expect((await routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id: 'r2' })).secret).not.toBe(rotated.secret);
    const theirs = routing.webhooksService.rotateSecret({ owner_id: newId('user'), id, rotation_id: 'r3' });
    expect((await errorOf(theirs))?.code).toBe('not_found');
  });
});

describe('its previous secrets', () => {
  const keysOf = async (id: WebhookId) => {
    const [row] = await routing.webhooks.findTargets([id]);
    return targetOf(row!, routing.box).keys;
  };

  it('all sign for a day, however often it is rotated, but only the last five', async () => {
    const { id } = await create();
    const rotate = (rotation_id: string) => routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id });
    const secrets = [(await routing.webhooksService.getSecret({ owner_id: owner, id })).secret];
    for (let n = 0; n < 2; n++) {
      secrets.unshift((await rotate(`r${n}`)).secret);
      // the times are in ms
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect((await rotate('r0')).secret).toBe(secrets[0]);
    const signatureOf = (key: SigningKey) => key.sign(Buffer.from(id));
    const signatures = async () => (await keysOf(id)).map(({ key }) => signatureOf(key));
    expect(await signatures()).toEqual(secrets.map((secret) => signatureOf(keyOfSecret(secret))));
    const [, newest, oldest] = await keysOf(id);
    expect(oldest!.until).toBeLessThan(newest!.until);
    expect(Math.abs(oldest!.until - Date.now() - 86_400_000)).toBeLessThan(60_000);

    for (let n = 2; n < 8; n++) secrets.unshift((await rotate(`r${n}`)).secret);
    expect(await signatures()).toEqual(secrets.slice(0, 6).map((secret) => signatureOf(keyOfSecret(secret))));
  });

  it('go when they expire or the webhook is deleted', async () => {
    const { id } = await create();
    const count = async () =>
      (await routing.database.query<{ n: number }>('SELECT count(*)::int AS n FROM previous_secret WHERE webhook_id = $1', [id])).rows[0]!
        .n;
    await routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id: 'r1' });
    await routing.database.query("UPDATE previous_secret SET expires_at = now() - interval '1 s' WHERE webhook_id = $1", [id]);
    await routing.webhooksService.rotateSecret({ owner_id: owner, id, rotation_id: 'r2' });
    expect(await count()).toBe(1);
    await routing.webhooksService.delete({ owner_id: owner, id });
    expect(await count()).toBe(0);
  });
});

describe('the list', () => {
  let ids: WebhookId[];
  beforeEach(async () => {
    ids = [];
    for (let n = 0; n < 5; n++) ids.unshift((await create({ name: String(n) })).id);
  });
  const page = (cursors: { limit?: number; after?: string; before?: string }) =>
    routing.webhooksService.list({ owner_id: owner, limit: 2, ...cursors });
  const at = (index: number) => cursorOf(ids[index] ?? '');

  it.each([
    ['the newest first', () => ({}), [0, 1]],
    ['after a cursor', () => ({ after: at(1) }), [2, 3]],
    ['at the end', () => ({ after: at(3) }), [4]],
    ['after the last', () => ({ after: at(4) }), []],
    ['directly before a cursor, newest first', () => ({ before: at(3) }), [1, 2]],
    ['before the first', () => ({ before: at(0) }), []],
    ['between two cursors, from the after end', () => ({ after: at(0), before: at(4) }), [1, 2]],
    ['all', () => ({ limit: 100 }), [0, 1, 2, 3, 4]],
  ])('%s', async (_, cursors, expected) => {
    const { data, page_info } = await page(cursors());
    expect(data.map(({ id }) => ids.indexOf(id))).toEqual(expected);
    expect(page_info).toEqual({
      total_count: 5,
      count: expected.length,
      start_cursor: expected.length === 0 ? null : at(expected[0] ?? 0),
      end_cursor: expected.length === 0 ? null : at(expected.at(-1) ?? 0),
    });
  });

  it('does not show the owner, nor the webhooks of others', async () => {
    const { data } = await page({});
    expect(data[0]).not.toHaveProperty('user_id');
    expect((await routing.webhooksService.list({ owner_id: newId('user'), limit: 10 })).page_info).toEqual({
      total_count: 0,
      count: 0,
      start_cursor: null,
      end_cursor: null,
    });
  });

  it('continues from a cursor whose webhook was deleted', async () => {
    await routing.webhooksService.delete({ owner_id: owner, id: ids[1] as WebhookId });
    expect((await page({ after: at(1) })).data.map(({ id }) => ids.indexOf(id))).toEqual([2, 3]);
  });

  it('refuses a cursor of something else', async () => {
    expect((await errorOf(page({ after: cursorOf(newId('source')) })))?.details.errors?.map(({ field }) => field)).toEqual(['after']);
    expect((await errorOf(page({ before: 'garbage' })))?.code).toBe('invalid');
  });
});
