import { beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { Api } from '../support/api.js';
import { listenForTarget, needing } from '../support/target.js';
import { componentOf, keysOf, QUIET, raw, type World } from './world.js';

const FIELDS = ['code', 'code_hash', 'configurable_props', 'created_at', 'id', 'name', 'updated_at', 'version'];

export const components = (world: () => World) =>
  describe('components', () => {
    let api: Api;
    let otherAccount: Api;
    beforeAll(async () => {
      api = await world().system.account();
      otherAccount = await world().system.account();
    });
    const create = (body: object) => api.post('/components', body);

    it('are created from code, and returned with exactly their fields', async () => {
      const before = Math.floor(Date.now() / 1000);
      const { status, headers, body } = await create({ component_code: QUIET });
      expect(status).toBe(200);
      expect(headers['content-type']).toMatch(/^application\/json/);
      expect(keysOf(body)).toEqual(['data']);
      expect(keysOf(body.data)).toEqual(FIELDS);
      expect(body.data).toMatchObject({ code: QUIET, name: 'Quiet Source', version: '0.0.1', configurable_props: [] });
      expect(body.data.id).toMatch(/^sc_[A-Za-z0-9]{12,}$/);
      expect(body.data.code_hash).toBe(createHash('sha256').update(QUIET).digest('hex'));
      expect(body.data.created_at).toBeGreaterThanOrEqual(before - 1);
      expect(body.data.updated_at).toBe(body.data.created_at);
    });

    it('hash the code exactly as it was submitted', async () => {
      const code = `// ünïcödé 💧\r\n${QUIET}\n\n`;
      const { data } = (await create({ component_code: code })).body;
      expect(data.code).toBe(code);
      expect(data.code_hash).toBe(createHash('sha256').update(code, 'utf8').digest('hex'));
    });

    it('list their props in the order of declaration, with additional attributes', async () => {
      const code = `export default { name: 'p', props: {
        zebra: { type: 'string', label: 'Z', description: 'd', default: 'x', extra: [1] },
        db: '$.service.db', http: '$.interface.http', timer: { type: '$.interface.timer', default: { intervalSeconds: 60 } },
        app: { type: 'app', app: 'mail' }, list: { type: 'string[]', options: async () => [] }, apple: { type: 'integer', optional: true, min: 1 } } }`;
      const { data } = (await create({ component_code: code })).body;
      expect(data).toMatchObject({ version: null });
      expect(data.configurable_props.map(({ name }: { name: string }) => name)).toEqual([
        'zebra',
        'db',
        'http',
        'timer',
        'app',
        'list',
        'apple',
      ]);
      expect(data.configurable_props).toEqual([
        { name: 'zebra', type: 'string', label: 'Z', description: 'd', default: 'x', extra: [1] },
        { name: 'db', type: '$.service.db' },
        { name: 'http', type: '$.interface.http' },
        { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 60 } },
        { name: 'app', type: 'app', app: 'mail' },
        { name: 'list', type: 'string[]', remoteOptions: true },
        { name: 'apple', type: 'integer', optional: true, min: 1 },
      ]);
    });

    it('are returned by id, and by key in the newest version', async () => {
      const version = (n: number) => `module.exports = { name: 'Keyed', key: 'my-own-key', version: '0.0.${n}', run() {} }`;
      const one = (await create({ component_code: version(1) })).body.data;
      const two = (await create({ component_code: version(2) })).body.data;
      // the newest is the one created last, whatever its version states
      const again = (await create({ component_code: version(1) })).body.data;
      expect(again.id).not.toBe(one.id);
      expect((await api.get(`/components/${one.id}`)).body).toEqual({ data: one });
      expect((await api.get(`/components/${two.id}/`)).body).toEqual({ data: two });
      expect((await api.get('/components/my-own-key')).body).toEqual({ data: again });
    });

    needing('accounts').it('do not exist for another account, by id or by key', async () => {
      const { id } = (await create({ component_code: "export default { name: 'x', key: 'hidden-key' }" })).body.data;
      const mine = await otherAccount.get(`/components/${id}`);
      const none = await otherAccount.get('/components/sc_000000000000000000');
      expect(mine.status).toBe(404);
      expect(mine.text.replaceAll(id, '?').replace(mine.body.request_id, '!')).toBe(
        none.text.replaceAll('sc_000000000000000000', '?').replace(none.body.request_id, '!'),
      );
      expect((await otherAccount.get('/components/hidden-key')).status).toBe(404);
    });

    it.each([
      ['nothing', {}, 'component_code or component_url is required'],
      ['null', { component_code: null, component_url: null }, 'component_code or component_url is required'],
      ['code that is not text', { component_code: 5 }, 'component_code must be a string'],
      ['a URL that is not text', { component_url: ['x'] }, 'component_url must be a string'],
      ['an invalid URL', { component_url: 'nowhere' }, 'component_url'],
      ['a URL of a file', { component_url: 'file:///etc/passwd' }, 'component_url'],
      ['empty code', { component_code: '' }, 'component_code must not be empty'],
      ['an empty URL', { component_url: '' }, 'component_url must not be empty'],
      ['code with a NUL character', { component_code: `${QUIET}//\0` }, 'NUL'],
      ['code that does not parse', { component_code: 'export default {\n  name: ,\n}' }, '2'],
      ['code without an export', { component_code: 'const a = 1' }, 'export'],
      ['an export that is not an object', { component_code: 'export default 5' }, 'exports no component'],
      ['a component without a name', { component_code: 'export default { version: "1" }' }, 'name'],
      ['code that throws', { component_code: 'throw new Error("at once")' }, 'at once'],
      [
        'a module that does not exist',
        { component_code: 'import x from "@sluice-stories/missing"; export default { name: "x" }' },
        '@sluice-stories/missing',
      ],
    ])('return 400 for %s', async (_, body, says) => {
      const response = await create(body);
      expect(response.status).toBe(400);
      expect(response.body.error).toContain(says);
    });

    it('return 400 for code over 512 KB, and 413 for a body over 2 MiB', async () => {
      expect((await create({ component_code: `//${'x'.repeat(600_000)}\n${QUIET}` })).status).toBe(400);
      expect(
        (await raw(api, 'POST', '/components', `{"component_code":"${'x'.repeat(2 * 1024 * 1024)}"}`, 'application/json')).status,
      ).toBe(413);
    });

    it.each([
      ...['http-request', 'interval-timer', 'cron-schedule', 'rss-feed', 'json-poller'],
      ...['github', 'gitlab', 'stripe', 'shopify', 'slack', 'twilio', 'standard-webhooks', 'cloudevents', 'hmac'],
    ])('components of the registry exist for every account: %s', async (key) => {
      const { status, body } = await otherAccount.get(`/components/registry/${key}`);
      expect(status).toBe(200);
      expect(keysOf(body.data)).toEqual(FIELDS);
      expect(body.data.code).toContain(key);
      expect((await otherAccount.post('/sources', { component_id: body.data.id, ...needed[key] })).status).toBe(200);
      // a client reads the component that its source refers to
      expect((await otherAccount.get(`/components/${body.data.id}`)).body).toEqual(body);
    });

    it('components of the registry are separate from those of the account', async () => {
      expect((await api.get('/components/http-request')).status).toBe(404);
      await create({ component_code: "export default { name: 'x', key: 'not-registered' }" });
      expect((await api.get('/components/registry/not-registered')).status).toBe(404);
      expect((await api.get('/components/registry/no%00ne')).status).toBe(404);
      expect((await api.get('/components/no%00ne')).status).toBe(404);
    });

    describe('by URL', () => {
      let files: Server;
      let asked: string[];
      let base: string;
      beforeAll(async () => {
        asked = [];
        files = createServer((request, response) => {
          asked.push(request.url ?? '');
          if (request.url === '/there.js') response.end(componentOf('From There'));
          else response.writeHead(404).end();
        });
        base = `http://${await listenForTarget(files)}`;
        files.unref();
      });
      const { it: fetching } = needing('receiver');

      fetching('are fetched', async () => {
        const { data } = (await create({ component_url: `${base}/there.js` })).body;
        expect(data).toMatchObject({ name: 'From There', code: componentOf('From There') });
      });
      fetching('return 400 if the URL cannot be fetched', async () => {
        const response = await create({ component_url: `${base}/gone.js` });
        expect(response.status).toBe(400);
        expect(response.body.errors).toEqual([{ field: 'component_url', message: expect.stringContaining('404') }]);
      });
      it('are not fetched if code is given: the URL is only stored', async () => {
        asked = [];
        expect((await create({ component_code: QUIET, component_url: `${base}/there.js` })).body.data.code).toBe(QUIET);
        expect((await create({ component_code: QUIET, component_url: 'no URL at all' })).status).toBe(200);
        expect(asked).toEqual([]);
      });
    });

    describe('of the registry', () => {
      it('are listed in pages, without their code', async () => {
        const all = (await api.get('/registry?limit=100')).body;
        expect(all.data.map(({ key }: any) => key)).toEqual(expect.arrayContaining(['http-request', 'interval-timer', 'manual']));
        for (const each of all.data) expect(keysOf(each)).toEqual(['configurable_props', 'description', 'id', 'key', 'name', 'version']);
        const ids: string[] = [];
        for (let after = ''; ;) {
          const { body } = await api.get(`/registry?limit=2&after=${after}`);
          if (body.data.length === 0) break;
          ids.push(...body.data.map(({ id }: any) => id));
          after = body.page_info.end_cursor;
        }
        expect(ids).toEqual(all.data.map(({ id }: any) => id));
        expect((await api.get('/registry?after=ZGNfMDAwMDAwMDAw')).status).toBe(400);
      });
    });
  });

const needed: Record<string, object> = {
  'json-poller': { configured_props: { url: 'http://127.0.0.1:1/', timer: { intervalSeconds: 3600 } } },
  ...Object.fromEntries(
    ['github', 'gitlab', 'stripe', 'shopify', 'slack', 'standard-webhooks'].map((key) => [key, { configured_props: { secret: 'secret' } }]),
  ),
  twilio: { configured_props: { authToken: 'token' } },
  hmac: { configured_props: { secret: 'secret', header: 'x-signature' } },
  'rss-feed': { configured_props: { url: 'http://127.0.0.1:1/', timer: { intervalSeconds: 3600 } } },
};
