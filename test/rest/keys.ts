import { beforeAll, describe, expect, it } from '@jest/globals';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { operations } from '../support/openapi.js';
import { needing } from '../support/target.js';
import { componentOf, keysOf, STAMP, type World } from './world.js';

const FIELDS = ['created_at', 'id', 'last_used_at', 'name', 'prefix', 'scope'];

export const keys = (world: () => World) =>
  describe('keys', () => {
    let api: Api;
    beforeAll(async () => {
      api = await world().system.account();
    });
    const create = (body?: object, headers?: Record<string, string>) => api.send('POST', '/keys', body, headers);
    const withKey = (key: string) => new Api(api.baseUrl, { ...api.account, api_key: key });
    const listed = async (id: string) =>
      (await api.get('/keys?limit=100')).body.data.find((key: { id: string }) => key.id === id) as Record<string, unknown> | undefined;

    it('are created with exactly their fields; the key itself is shown only once', async () => {
      const { status, body } = await create({ name: `laptop ${STAMP}` });
      expect(status).toBe(200);
      expect(keysOf(body.data)).toEqual([...FIELDS, 'key'].sort());
      const { key, ...shown } = body.data;
      expect(shown).toMatchObject({ name: `laptop ${STAMP}`, scope: 'write', last_used_at: null, prefix: key.slice(0, 8) });
      expect(shown.id).toMatch(/^key_[A-Za-z0-9]{12,}$/);
      const list = await api.get('/keys');
      expect(keysOf(list.body)).toEqual(['data', 'page_info']);
      expect(list.body.data[0]).toEqual(shown);
      expect(list.text).not.toContain(key);
      expect((await withKey(key).get('/users/me')).body.data).toMatchObject({ id: api.account.id, api_key: key });
    });

    it('default to a name of null and the scope write, without a body, too', async () => {
      for (const body of [undefined, {}, { name: null, scope: null }])
        expect((await create(body)).body.data).toMatchObject({ name: null, scope: 'write' });
    });

    it.each([{ scope: 'admin' }, { name: 5 }, { name: 'x'.repeat(256) }, { name: 'a\0b' }, { scop: 'read' }])(
      'return 400 for %j',
      async (body) => expect((await create(body)).status).toBe(400),
    );

    needing('accounts').it('include those that the operator has issued', async () => {
      const account = await world().system.account();
      const { page_info, data } = (await account.get('/keys')).body;
      expect([page_info.total_count, data.map(({ prefix }: { prefix: string }) => prefix)]).toEqual([
        1,
        [account.account.api_key.slice(0, data[0].prefix.length)],
      ]);
    });

    it('show when they were last used', async () => {
      const { id, key } = (await create()).body.data;
      await withKey(key).get('/users/me');
      // another gateway shows it once it is written
      await eventually(async () => expect((await listed(id))?.last_used_at).toEqual(expect.any(Number)));
      expect(Math.abs(((await listed(id))!.last_used_at as number) - Date.now() / 1000)).toBeLessThan(60);
    });

    it('are revoked once, with 204, also by themselves', async () => {
      const { id, key } = (await create()).body.data;
      const response = await withKey(key).delete(`/keys/${id}`);
      expect([response.status, response.text]).toEqual([204, '']);
      expect((await withKey(key).get('/users/me')).status).toBe(401);
      expect(await listed(id)).toBeUndefined();
      for (const gone of [id, 'key_000000000000000000', 'nope']) expect((await api.delete(`/keys/${gone}`)).status).toBe(404);
    });

    it('are created once for one Idempotency-Key, and only the key that created them may see them again', async () => {
      const headers = { 'idempotency-key': `keys-${STAMP}` };
      const first = await create({ name: 'once' }, headers);
      const again = await create({ name: 'once' }, headers);
      expect([again.status, again.body]).toEqual([200, first.body]);
      const other = await withKey(first.body.data.key).send('POST', '/keys', { name: 'once' }, headers);
      expect([other.status, other.text.includes(first.body.data.key)]).toEqual([422, false]);
    });

    it('are listed newest first, in pages', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 3; n++) ids.unshift((await create()).body.data.id);
      const first = (await api.get('/keys?limit=2')).body;
      expect(first.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2));
      expect((await api.get(`/keys?limit=1&after=${first.page_info.end_cursor}`)).body.data[0].id).toBe(ids[2]);
      expect((await api.get(`/keys?after=${Buffer.from('dc_1').toString('base64url')}`)).status).toBe(400);
      expect((await api.get('/keys?include=scope')).body.data[0]).toEqual({ scope: 'write' });
    });

    describe('of scope read', () => {
      let reader: Api;
      let source: any;
      let webhook: string;
      beforeAll(async () => {
        reader = withKey((await create({ scope: 'read' })).body.data.key as string);
        source = await api.source(componentOf('Endpoint', { http: '$.interface.http' }));
        webhook = await api.webhook('https://example.com/');
      });

      it('may read', async () => {
        for (const path of [`/sources/${source.id}`, '/users/me/sources', `/webhooks/${webhook}/deliveries`, '/keys', '/registry'])
          expect([path, (await reader.get(path)).status]).toEqual([path, 200]);
        expect((await reader.send('HEAD', `/sources/${source.id}`)).status).toBe(200);
      });

      it('may not read secrets', async () => {
        const refused = await reader.get(`/webhooks/${webhook}/secret`);
        expect([refused.status, refused.body.title]).toEqual([403, 'Forbidden']);
        const me = await reader.get('/users/me');
        expect(me.status).toBe(200);
        expect(me.body.data).not.toHaveProperty('api_key');
        const { body: list } = await reader.get('/users/me/sources');
        const { body: one } = await reader.get(`/sources/${source.id}`);
        for (const { configured_props } of [...list.data, one.data]) expect(configured_props).toEqual({ http: {} });
        const id = await api.webhook('https://me:pass@example.com/x?y=1');
        const [{ body: shown }, { body: all }] = [await reader.get(`/webhooks/${id}`), await reader.get('/users/me/webhooks')];
        expect([shown.data.url, all.data[0].url]).toEqual(Array(2).fill('https://example.com/x?y=1'));
        expect((await api.get(`/webhooks/${id}`)).body.data.url).toBe('https://me:pass@example.com/x?y=1');
      });

      it.each(operations.filter(({ method }) => method !== 'GET').map(({ method, path }) => [method, path] as const))(
        'may not %s %s',
        async (method, path) => {
          const real = path
            .slice('/v1'.length)
            .replace(/webhooks\/\{\w+\}/, `webhooks/${webhook}`)
            .replace(/sources\/\{\w+\}/, `sources/${source.id}`)
            .replace(/\{\w+\}/g, 'x');
          for (const body of [undefined, { unknown: 1 }]) expect((await reader.send(method, real, body)).status).toBe(403);
          expect((await reader.raw(method, real, '{', { 'content-type': 'application/json' })).status).toBe(403);
        },
      );
    });
  });
