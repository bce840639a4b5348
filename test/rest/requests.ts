import { beforeAll, describe, expect, it } from '@jest/globals';
import { type Api, http } from '../support/api.js';
import { document, operations } from '../support/openapi.js';
import { needing, target } from '../support/target.js';
import { keysOf, QUIET, raw, type World } from './world.js';

const TWO_MIB = 2 * 1024 * 1024;

/** Rules for every request: the order of the checks, the form of errors, and variants that real clients send. */
export const requests = (world: () => World) =>
  describe('requests', () => {
    let api: Api;
    let source: any;
    let origin: string;
    beforeAll(async () => {
      api = await world().system.account();
      source = await api.source(QUIET);
      origin = new URL(api.baseUrl).origin;
    });

    describe('without a valid key return 401, whatever else is wrong with them', () => {
      it.each([
        ['GET', '/v1/users/me', {}],
        ['GET', '/v1/users/me', { authorization: 'Bearer' }],
        ['GET', '/v1/users/me', { authorization: 'Bearer ' }],
        ['GET', '/v1/users/me', { authorization: 'Bearer nonsense' }],
        ['GET', '/v1/users/me', { authorization: 'Basic abc' }],
        ['GET', '/v1/users/me?limit=0', { authorization: 'Bearer a b' }],
        ['GET', '/v1/no/such/path', {}],
        ['GET', '/v1', {}],
        ['PATCH', '/v1/sources/x', {}],
        ['POST', '/v1/sources', { 'content-type': 'text/plain' }, 'x'],
        ['POST', '/v1/sources', { 'content-type': 'application/json' }, 'x'.repeat(TWO_MIB + 1)],
        ['GET', '/%761/users/me', {}],
        ['GET', '/%761/components/registry/http-request', {}],
        ['GET', '/v%31/components/registry/http-request', {}],
      ])('%s %s %j', async (method, path, headers: Record<string, string>, body: string | undefined = undefined) => {
        const response = await http(method, `${origin}${path}`, { headers, body });
        expect(response.status).toBe(401);
        expect(response.headers['www-authenticate']).toBe('Bearer');
        expect(response.body).toMatchObject({ status: 401, title: 'Unauthorized' });
      });
      it('also if the key has one character more or less', async () => {
        const key = api.account.api_key;
        for (const wrong of [`${key}x`, key.slice(0, -1), key.toUpperCase()])
          expect((await http('GET', `${origin}/v1/users/me`, { headers: { authorization: `Bearer ${wrong}` } })).status).toBe(401);
      });
      it('but accept the scheme in upper or lower case', async () => {
        for (const scheme of ['bearer', 'BEARER'])
          expect(
            (await http('GET', `${origin}/v1/users/me`, { headers: { authorization: `${scheme} ${api.account.api_key}` } })).status,
          ).toBe(200);
      });
      needing('accounts').it('also if the key has been revoked', async () => {
        const { id, api_key } = await world().system.sluice('key', 'create', '--account', api.account.id);
        const me = () => http('GET', `${origin}/v1/users/me`, { headers: { authorization: `Bearer ${api_key}` } });
        expect((await me()).body.data.api_key).toBe(api_key);
        await world().system.sluice('key', 'revoke', id);
        expect((await me()).status).toBe(401);
        expect(await world().system.sluice('key', 'revoke', id)).toEqual({ id, revoked: true });
      });
    });

    describe('for unknown paths and methods return 404 or 405 before their body is read', () => {
      it.each([
        ['GET', '/nothing', 404],
        ['POST', '/nothing', 404],
        ['GET', '/sources/x/nothing', 404],
        ['PATCH', '/sources', 405, 'POST'],
        ['POST', '/sources/dc_1', 405, 'DELETE, GET, HEAD, PATCH, PUT'],
        ['GET', '/sources', 405, 'POST'],
        ['GET', '/sources/', 405, 'POST'],
        ['PUT', '/subscriptions', 405, 'DELETE, POST'],
        ['GET', '/subscriptions', 405, 'DELETE, POST'],
        ['DELETE', '/users/me', 405, 'GET, HEAD'],
        ['POST', '/users/me/sources', 405, 'GET, HEAD'],
        ['POST', '/workflows/p_1/%24errors/event_summaries', 405, 'GET, HEAD'],
        ['PUT', '/sources/dc_1/events', 405, 'DELETE, GET, HEAD, POST'],
        ['OPTIONS', '/users/me', 405, 'GET, HEAD'],
      ])('%s %s: %i', async (method, path, status, allow: string | undefined = undefined) => {
        for (const [body, type] of [
          [undefined, undefined],
          ['not JSON', 'application/json'],
          ['text', 'text/plain'],
          ['x'.repeat(TWO_MIB + 1), 'application/json'],
        ]) {
          if (method === 'GET' && body) continue;
          const response = await raw(api, method, path, body, type);
          expect([type, response.status, response.headers.allow]).toEqual([type, status, allow]);
        }
      });
    });

    describe('with a body', () => {
      it.each([
        ['over the limit', 'x'.repeat(TWO_MIB + 1), 'application/json', 413],
        ['over the limit and of another type', 'x'.repeat(TWO_MIB + 1), 'text/plain', 413],
        ['of text', '{"component_code":"x"}', 'text/plain', 415],
        ['of a form', 'component_code=x', 'application/x-www-form-urlencoded', 415],
        ['of no type', '{"component_code":"x"}', undefined, 415],
        ['of an invalid type', '{}', 'json', 415],
        ['that is not JSON', '{"component_code":', 'application/json', 400],
        ['nested deeper than 200 levels', `{"configured_props":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'application/json', 400],
        ['with fields of the wrong types', '{"component_code":{"constructor":"x","__proto__":null}}', 'application/json', 400],
        ['that is a string', '"x"', 'application/json', 400],
        ['that is null', 'null', 'application/json', 400],
        ['that is a list', '[]', 'application/json', 400],
      ])('%s', async (_, body, type, status) => {
        for (const [method, path] of [
          ['POST', '/components'],
          ['POST', '/sources'],
          ['PUT', `/sources/${source.id}`],
          ['PUT', '/sources/dc_000000000000000000'],
          ['POST', '/webhooks'],
          ['POST', '/subscriptions'],
        ] as const)
          expect([method, path, (await raw(api, method, path, body, type)).status]).toEqual([method, path, status]);
      });
      it.each([
        ['application/json; charset=utf-8', 200],
        ['Application/JSON', 200],
        ['application/json-seq', 415],
        ['application/jsonlines', 415],
        ['application/vnd.api+json', 415],
      ])('a body of the content type %s returns %d', async (type, status) => {
        expect((await raw(api, 'POST', '/components', JSON.stringify({ component_code: QUIET }), type)).status).toBe(status);
      });
      it('are read up to the size limit', async () => {
        const body = `{"component_code":"x","pad":"${'x'.repeat(TWO_MIB - 31)}"}`;
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(TWO_MIB);
        expect((await raw(api, 'POST', '/components', body, 'application/json')).status).toBe(400);
      });
      it('work as if without one if it is empty, whatever its type', async () => {
        const url = encodeURIComponent('https://example.com/');
        for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', undefined])
          for (const body of [undefined, ''])
            expect([type, (await raw(api, 'POST', `/webhooks?url=${url}`, body, type)).status]).toEqual([type, 200]);
        expect((await raw(api, 'POST', '/components', '', 'application/json')).status).toBe(400);
        expect((await raw(api, 'GET', '/users/me', undefined, 'application/json')).status).toBe(200);
        const { id } = await api.source(QUIET);
        expect((await raw(api, 'DELETE', `/sources/${id}/events`, '', 'application/json')).status).toBe(202);
        expect((await raw(api, 'DELETE', `/sources/${id}`, undefined, 'application/json')).status).toBe(204);
      });
    });

    describe('that fail', () => {
      it.each([
        ['GET', '/nothing', 404, 'Not Found'],
        ['GET', '/sources/dc_000000000000000000', 404, 'Not Found'],
        ['GET', '/sources', 405, 'Method Not Allowed'],
        ['GET', '/users/me/sources?limit=0', 400, 'Bad Request'],
        ['POST', '/components', 400, 'Bad Request'],
      ])('return a problem of RFC 9457: %s %s', async (method, path, status, title) => {
        const { body, headers } = await api.send(method, path);
        expect(headers['content-type']).toBe('application/problem+json');
        expect(body).toMatchObject({ type: 'about:blank', title, status, detail: body.error, request_id: headers['x-request-id'] });
        expect(typeof body.error).toBe('string');
        expect(body.error).not.toBe('');
      });
      it('never reveal internals', async () => {
        for (const path of ['/sources/dc_000000000000000000', '/components/none', '/webhooks/wh_000000000000000000'])
          expect((await api.get(path)).text).not.toMatch(/catalog|routing|kafka|at .*\.js|postgres/i);
      });
      it('list each invalid field', async () => {
        const { body } = await api.get('/users/me/sources?limit=abc&after=%%%&before=a&before=b'.replace('%%%', '%25'));
        expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(expect.arrayContaining(['limit', 'before']));
      });
      it('return 400 or 404 if their path is not text', async () => {
        for (const path of ['/sources/%', '/sources/%ff', '/components/%c0%80']) expect([400, 404]).toContain((await api.get(path)).status);
      });
    });

    it('have an id, from the client or from the gateway', async () => {
      expect((await api.send('GET', '/users/me', undefined, { 'x-request-id': 'mine-1' })).headers['x-request-id']).toBe('mine-1');
      const other = (await api.send('GET', '/users/me', undefined, { 'x-request-id': 'not a valid id {}' })).headers['x-request-id'];
      expect(other).toMatch(/^[\w-]{20,}$/);
      expect((await http('GET', `${origin}/v1/users/me`)).headers['x-request-id']).toBeDefined();
    });

    describe('with HEAD return the headers of GET, without a body', () => {
      it.each([
        '/users/me',
        '/users/me/sources/',
        '/users/me/webhooks?limit=5',
        '/users/me/subscriptions',
        '/components/registry/http-request',
      ])('%s', async (path) => {
        const [head, get] = [await api.send('HEAD', path), await api.get(path)];
        expect(head.text).toBe('');
        expect([head.status, head.headers['content-type'], head.headers['content-length']]).toEqual([
          200,
          get.headers['content-type'],
          get.headers['content-length'],
        ]);
      });
      it('HEAD works for a resource that does not exist', async () => {
        for (const [path, status] of [
          ['/sources/dc_000000000000000000', 404],
          ['/nothing', 404],
          ['/users/me/sources?limit=0', 400],
          ['/subscriptions', 405],
        ] as const) {
          const response = await api.send('HEAD', path);
          expect([path, response.status, response.text]).toEqual([path, status, '']);
        }
        expect((await http('HEAD', `${origin}/v1/users/me`)).status).toBe(401);
      });
      it('HEAD works for a source and its events', async () => {
        for (const path of [`/sources/${source.id}`, `/sources/${source.id}/event_summaries`])
          expect((await api.send('HEAD', path)).status).toBe(200);
      });
    });

    it('are the same with and without a trailing slash', async () => {
      const webhook = await api.webhook('https://example.com/');
      for (const path of [
        '/users/me',
        '/users/me/sources',
        '/users/me/webhooks',
        '/users/me/subscriptions',
        '/users/me/auto_subscriptions',
        `/sources/${source.id}`,
        `/sources/${source.id}/event_summaries`,
        `/webhooks/${webhook}`,
        '/components/registry/rss-feed',
      ])
        for (const query of ['', '?include=id,data'])
          expect([path, (await api.get(`${path}/${query}`)).text]).toEqual([path, (await api.get(path + query)).text]);
      expect((await api.post(`/subscriptions/?emitter_id=${source.id}&listener_id=${webhook}`)).status).toBe(200);
      expect((await api.delete(`/subscriptions/?emitter_id=${source.id}&listener_id=${webhook}`)).status).toBe(200);
      expect((await api.post(`/auto_subscriptions/?event_name=default&listener_id=${webhook}`)).status).toBe(200);
      expect((await api.post(`/webhooks/?url=${encodeURIComponent('http://example.com')}`)).status).toBe(200);
      expect((await api.post('/components/', { component_code: QUIET })).status).toBe(200);
      expect((await api.delete(`/sources/${source.id}/events/`)).status).toBe(202);
    });

    it('may lack the body that the description does not require', async () => {
      const prop = "x: { type: 'string', optional: true, options: () => ['a'] }";
      const withProp = await api.source(`export default { name: 'quiet', props: { ${prop} }, run() {} }`);
      const [webhook, connection] = await Promise.all([
        api.post('/webhooks?url=https://example.test'),
        api.post('/connections', { app: 'a', credentials: { b: 'c' } }),
      ]);
      const ids: Record<string, string> = {
        sources: withProp.id,
        components: withProp.component_id,
        webhooks: webhook.body.data.id,
        connections: connection.body.data.id,
      };
      const optional = operations.filter(({ mayLackBody }) => mayLackBody);
      const urlOf = (path: string) =>
        path
          .replace(/^\/v1\/(\w+)(?:\/\{\w+\})?/, (_, kind: string) => ['', kind, ids[kind] ?? []].flat().join('/'))
          .replace('{name}', 'x');
      const statuses = await Promise.all(
        optional.map(async ({ method, path, operationId }) => [operationId, (await api.send(method, urlOf(path))).status]),
      );
      expect(Object.fromEntries(statuses)).toEqual({
        ...{ createKey: 200, patchConnection: 200, patchSource: 200, runSource: 202, updateWebhook: 200, patchWebhook: 200 },
        ...{ listSourcePropOptions: 200, listComponentPropOptions: 200 },
      });
    });

    it('are described at /openapi.json and /docs, without a key', async () => {
      const description = await http('GET', `${origin}/openapi.json`);
      expect(description.body).toEqual(document);
      const page = await http('GET', `${origin}/docs`);
      expect(page.status).toBe(200);
      expect(page.text).not.toMatch(/(src|href)="https?:/);
    });

    it('return the current user', async () => {
      const { data } = (await api.get('/users/me')).body;
      expect(keysOf(data)).toEqual(
        [
          'api_key',
          'daily_compute_time_quota',
          'daily_compute_time_used',
          'daily_invocations_quota',
          'daily_invocations_used',
          'email',
          'id',
          'username',
        ].sort(),
      );
      expect(data).toMatchObject({
        id: api.account.id,
        email: api.account.email,
        api_key: api.account.api_key,
      });
      for (const name of ['daily_compute_time_quota', 'daily_invocations_quota'])
        expect(data[name]).toEqual(target.kind === 'running' ? expect.any(Number) : 2147483647);
      expect(data.id).toMatch(/^u_[A-Za-z0-9]{12,}$/);
    });
  });
