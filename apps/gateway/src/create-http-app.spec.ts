import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import {
  createSource,
  type CreateSource,
  deleteSource,
  getSource,
  Invalid,
  listWebhooks,
  NotFound,
  SluiceError,
  type Source,
  type SourceReference,
  TimedOut,
  Unavailable,
  createWebhook,
} from '#contracts';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { FakeMessages } from '#testing';
import { AccountsService } from './accounts/accounts.service.js';
import { IdempotencyInMemory } from './idempotency/idempotency-in-memory-for-tests.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { LateResponses } from './idempotency/idempotent-posts.js';
import { SourcesController } from './sources/sources.controller.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';
import { createHttpApp } from './create-http-app.js';
import { FieldsInterceptor } from './http/fields.js';

const ME = 'u_000000000000000001';
const SOURCE = 'dc_000000000000000001';
const KEY = { authorization: 'Bearer my-key' };
const silent = createLog('test', 'silent');

describe('the HTTP side of the gateway', () => {
  let app: NestFastifyApplication;
  let messages: FakeMessages;
  let variables: Record<string, string | undefined>;

  const start = async (changed: Record<string, string> = {}) => {
    variables = Object.fromEntries(Object.keys(changed).map((name) => [name, process.env[name]]));
    Object.assign(process.env, changed);
    // an authenticator that knows three keys
    const accounts = {
      authenticate: async (key: string) =>
        /^(my|other|read)-key$/.test(key) ? { id: ME, scope: key === 'read-key' ? 'read' : 'write' } : undefined,
    };
    @Module({
      controllers: [SourcesController, WebhooksController],
      providers: [
        { provide: APP_INTERCEPTOR, useClass: LateResponses },
        { provide: APP_INTERCEPTOR, useClass: FieldsInterceptor },
        { provide: AccountsService, useValue: accounts },
        { provide: IdempotencyRepository, useValue: new IdempotencyInMemory() },
        { provide: Messages, useValue: messages },
        { provide: LOG, useValue: silent },
      ],
    })
    class HttpModule {}
    app = await createHttpApp({ module: HttpModule }, silent);
    await app.init();
    await app.getHttpAdapter().getInstance().ready();
  };

  beforeEach(() => {
    messages = new FakeMessages()
      .replyTo(getSource, ({ id }: SourceReference) => ({ id, name: 'one', active: true }) as Source)
      .replyTo(createSource, ({ id, name = 'one' }: CreateSource) => ({ id, name }) as Source);
  });
  afterEach(async () => {
    await app.close();
    for (const [name, value] of Object.entries(variables)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  const send = async (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    { headers = {}, body }: { headers?: object; body?: unknown } = {},
  ) => {
    const payload = body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const response = await app.inject({ method, url, headers: { ...KEY, ...type, ...headers } as Record<string, string>, ...payload });
    const { statusCode: status } = response;
    return { status, headers: response.headers, body: response.body === '' ? undefined : JSON.parse(response.body) };
  };

  describe('before a controller is reached', () => {
    beforeEach(() => start());

    it('shows the documentation to browsers at /, and 404 to programs', async () => {
      const browser = await app.inject({ method: 'GET', url: '/', headers: { accept: 'text/html,*/*;q=0.8' } });
      expect([browser.statusCode, browser.headers.location]).toEqual([302, '/docs']);
      expect((await app.inject({ method: 'GET', url: '/', headers: { accept: '*/*' } })).statusCode).toBe(404);
    });

    it.each([
      ['no key', '/v1/sources/x', {}],
      ['an unknown key', '/v1/sources/x', { authorization: 'Bearer unknown' }],
      ['another scheme', '/v1/sources/x', { authorization: 'Basic bXkta2V5' }],
      ['no key for a path that does not exist', '/v1/nothing', {}],
      ['no key for a path that is written in another way', '/%761/sources/x', {}],
    ])('returns 401 to a request with %s', async (_, url, headers) => {
      const response = await app.inject({ method: 'GET', url, headers });
      expect(response.statusCode).toBe(401);
      expect(response.headers).toMatchObject({ 'www-authenticate': 'Bearer', 'content-type': 'application/problem+json' });
      expect(messages.requests).toEqual([]);
    });

    it('reads a refused body to its end, so that the client can finish sending and use the connection again', async () => {
      await app.listen(0, '127.0.0.1');
      const { port } = app.getHttpServer().address() as AddressInfo;
      const client = connect(port, '127.0.0.1');
      const size = 5_000_000;
      const head = 'host: x\r\nauthorization: Bearer my-key\r\ncontent-type: application/json';
      client.write(`POST /v1/sources HTTP/1.1\r\n${head}\r\ncontent-length: ${size}\r\n\r\n`);
      const [refusal] = (await once(client, 'data')) as [Buffer];
      expect(refusal.toString()).toMatch(/^HTTP\/1.1 413/);
      client.write(Buffer.alloc(size, ' '));
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\n${head}\r\n\r\n`);
      const [response] = (await once(client, 'data')) as [Buffer];
      expect(response.toString()).toMatch(/^HTTP\/1.1 200/);
      client.destroy();
    });

    it('ends each JSON body with a line break, counts it in content-length, and sends a repeated response byte for byte', async () => {
      const [found, unknown, head] = [
        await app.inject({ method: 'GET', url: `/v1/sources/${SOURCE}`, headers: KEY }),
        await app.inject({ method: 'GET', url: '/v1/nothing', headers: KEY }),
        await app.inject({ method: 'HEAD', url: `/v1/sources/${SOURCE}`, headers: KEY }),
      ];
      for (const { body, headers } of [found, unknown]) {
        expect(body).toMatch(/^[^\n]*\}\n$/);
        expect(headers['content-length']).toBe(String(Buffer.byteLength(body)));
      }
      expect(head.headers['content-length']).toBe(found.headers['content-length']);
      const post = () =>
        app.inject({
          method: 'POST',
          url: '/v1/sources',
          headers: { ...KEY, 'content-type': 'application/json', 'idempotency-key': 'lines' },
          payload: JSON.stringify({ component_id: 'sc_000000000000000000000000000' }),
        });
      const [first, second] = [await post(), await post()];
      expect(second.headers['idempotency-replayed']).toBe('true');
      expect(second.body).toBe(first.body);
    });

    it('forbids caches to store responses, and browsers to run or frame content of other origins', async () => {
      for (const url of ['/docs', '/openapi.json', `/v1/sources/${SOURCE}`, '/v1/nothing']) {
        const { headers } = await app.inject({ method: 'GET', url, headers: KEY });
        expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' });
        expect(headers['content-security-policy']).toMatch(/default-src 'none'; script-src 'self';.* frame-ancestors 'none'$/);
      }
    });

    it('serves documentation that complies with the policy: without inline scripts', async () => {
      const { body } = await app.inject({ method: 'GET', url: '/docs' });
      const scripts = [...body.matchAll(/<script([^>]*)>([^<]*)/g)];
      expect(scripts.length).toBeGreaterThan(0);
      for (const [, attributes, text] of scripts) expect([attributes, text?.trim()]).toEqual([expect.stringMatching(/src="\.?\/docs/), '']);
      expect(body).not.toMatch(/ on\w+=|javascript:/);
    });

    it.each(['bearer my-key', 'Bearer  my-key '])('accepts the header "Authorization: %s"', async (authorization) => {
      expect((await send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } })).status).toBe(200);
    });

    it.each<[number, 'GET' | 'POST' | 'PUT', string, string | undefined]>([
      [404, 'GET', '/v1/nothing', undefined],
      [405, 'GET', '/v1/sources', 'POST'],
      [405, 'PUT', `/v1/sources/${SOURCE}/run`, 'POST'],
      [405, 'POST', `/v1/sources/${SOURCE}/`, 'DELETE, GET, HEAD, PATCH, PUT'],
    ])('returns %i to %s %s', async (status, method, url, allow) => {
      const response = await send(method, url);
      expect({ status: response.status, allow: response.headers.allow }).toEqual({ status, allow });
      expect(response.body).toMatchObject({ type: 'about:blank', status, detail: response.body.error });
    });

    it('names the list when GET is sent to the route that creates its items', async () => {
      expect((await send('GET', '/v1/sources/')).body.detail).toContain('/v1/users/me/sources');
    });

    it.each([
      ['a given request id', 'my-id.1', /^my-id\.1$/],
      ['a new id instead of one that could split a log line', 'a b', /^[0-9a-f-]{36}$/],
      ['a new id instead of one that is too long', 'x'.repeat(129), /^[0-9a-f-]{36}$/],
    ])('names the request by %s', async (_, id, expected) => {
      const { headers, body } = await send('GET', '/v1/nothing', { headers: { 'x-request-id': id } });
      expect(headers['x-request-id']).toMatch(expected);
      expect(body.request_id).toBe(headers['x-request-id']);
    });
  });

  describe('a body', () => {
    beforeEach(() => start({ SLUICE_MAX_BODY_BYTES: '2000' }));
    const nested = (depth: number) => `{"configured_props":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;

    it.each<[string, number, unknown, object]>([
      ['is a JSON object', 200, { component_code: 'x' }, {}],
      ['may begin with a byte order mark', 200, '\uFEFF{"component_code":"x"}', {}],
      ['may be of a type that is JSON by its suffix', 200, '{"component_code":"x"}', { 'content-type': 'application/merge-patch+json' }],
      ['is not an array', 400, '[]', {}],
      ['is not null', 400, 'null', {}],
      ['is not broken', 400, '{', {}],
      ['does not nest too deeply', 400, nested(250), {}],
      ['is not text', 415, 'x', { 'content-type': 'text/plain' }],
      ['is not compressed', 415, '{}', { 'content-encoding': 'gzip' }],
      ['is not too large, regardless of its type', 413, 'x'.repeat(2001), { 'content-type': 'text/plain' }],
    ])('%s: %i', async (_, status, body, headers) => {
      const response = await send('POST', '/v1/sources', { body, headers });
      expect(response.status).toBe(status);
      expect(messages.requests).toHaveLength(status === 200 ? 1 : 0);
    });

    it('counts as absent when it is empty, regardless of its type', async () => {
      for (const type of ['application/json', 'text/plain'])
        expect((await send('POST', `/v1/sources/${SOURCE}/run`, { body: ' ', headers: { 'content-type': type } })).status).toBe(202);
    });

    it('with invalid fields is refused, and each of them is listed', async () => {
      const { status, body } = await send('POST', '/v1/sources', { body: { name: 5, configured_props: [] } });
      expect(status).toBe(400);
      expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(expect.arrayContaining(['name', 'configured_props']));
    });

    it('with fields that the route does not know is refused, and each of them is listed', async () => {
      const { status, body } = await send('POST', '/v1/sources', { body: { component_codes: 'x', owner_id: 'u_000000000000000002' } });
      expect([status, messages.requests]).toEqual([400, []]);
      expect(body.errors).toEqual([
        { field: 'component_codes', message: 'unknown field "component_codes"; did you mean component_code?' },
        { field: 'owner_id', message: expect.stringContaining('unknown field "owner_id"') },
      ]);
    });
  });

  describe('a key of scope read', () => {
    beforeEach(() => start({ SLUICE_MAX_BODY_BYTES: '2000' }));
    const READ = { authorization: 'Bearer read-key' };

    it.each<[number, string, 'GET' | 'POST' | 'PUT' | 'DELETE', string, unknown, object]>([
      [200, 'reads', 'GET', `/v1/sources/${SOURCE}`, undefined, {}],
      [404, 'requests an unknown path', 'POST', '/v1/nothing', {}, {}],
      [405, 'uses a wrong method', 'POST', `/v1/sources/${SOURCE}`, {}, {}],
      [413, 'sends too much', 'POST', '/v1/sources', 'x'.repeat(2001), { 'content-type': 'text/plain' }],
      [415, 'sends a body that is not JSON', 'POST', '/v1/sources', 'x', { 'content-type': 'text/plain' }],
      [403, 'creates', 'POST', '/v1/sources', { component_code: 'x' }, {}],
      [403, 'sends a malformed body', 'POST', '/v1/sources', '{', {}],
      [403, 'sends an invalid body', 'PUT', `/v1/sources/${SOURCE}`, { active: 'no' }, {}],
      [403, 'deletes a resource that does not exist', 'DELETE', '/v1/sources/nope', undefined, {}],
      [403, 'requests a secret', 'GET', '/v1/webhooks/nope/secret', undefined, {}],
    ])('gets %d when it %s', async (status, _, method, url, body, headers) => {
      const response = await send(method, url, { body, headers: { ...READ, ...headers } });
      expect(response.status).toBe(status);
      if (status === 403) expect([response.body.detail, messages.requests]).toEqual([expect.stringContaining('scope read'), []]);
    });
  });

  describe('the error of a service', () => {
    beforeEach(() => start());

    it.each<[number, Error, object]>([
      [
        400,
        new Invalid([{ field: 'name', message: 'name is odd' }]),
        { detail: 'name is odd', errors: [{ field: 'name', message: 'name is odd' }] },
      ],
      [404, new NotFound('source', SOURCE), { detail: `source ${SOURCE} not found` }],
      [409, new SluiceError('conflict', 'taken'), { detail: 'taken' }],
      [413, new SluiceError('too_large', 'large'), { detail: 'large' }],
      [422, new SluiceError('unprocessable', 'no'), { detail: 'no' }],
      [429, new SluiceError('too_many_requests', 'slower'), { detail: 'slower' }],
      [500, new SluiceError('internal', 'SELECT secret FROM table'), {}],
      [500, new TypeError('secret is not a function'), {}],
      [503, new Unavailable('secret-host:9092 is down'), {}],
      [
        503,
        new Unavailable('secret', 'the disk of the database is full'),
        { detail: 'the service is temporarily unavailable, because the disk of the database is full; retry later' },
      ],
      [503, Object.assign(new Error('connect ECONNREFUSED secret'), { code: 'ECONNREFUSED' }), {}],
      [504, new TimedOut('catalog.source.get at secret'), {}],
    ])('is returned as %i and reveals nothing internal: %s', async (status, error, shown) => {
      messages.replyTo(getSource, () => {
        throw error;
      });
      const response = await send('GET', `/v1/sources/${SOURCE}`);
      expect(response.status).toBe(status);
      expect(response.body).toMatchObject({ status, ...shown });
      expect(JSON.stringify(response.body)).not.toContain('secret');
      expect(response.headers['retry-after']).toBe([429, 503].includes(status) ? '5' : undefined);
    });

    it('is not requested for a malformed id', async () => {
      expect((await send('GET', '/v1/sources/one')).status).toBe(404);
      expect((await send('DELETE', '/v1/sources/wh_000000000000000001')).status).toBe(404);
      expect(messages.requests).toEqual([]);
    });
  });

  describe('a POST with an Idempotency-Key', () => {
    beforeEach(() => start());
    const post = (key: string, body: unknown = { component_code: 'x' }) =>
      send('POST', '/v1/sources', { body, headers: { 'idempotency-key': key } });

    it('is executed once, and its repeat gets the same response', async () => {
      const [first, second] = [await post('a'), await post('a')];
      expect(second.body).toEqual(first.body);
      expect([first, second].map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true']);
      expect(messages.requests).toHaveLength(1);
    });

    it('is refused with another payload', async () => {
      await post('a');
      expect((await post('a', { component_code: 'y' })).status).toBe(422);
      expect((await post('b', { component_code: 'y' })).status).toBe(200);
    });

    it('is refused while the first one is in progress', async () => {
      const { promise: gate, resolve: open } = Promise.withResolvers<Source>();
      messages.replyTo(createSource, () => gate as never);
      const first = post('a');
      await new Promise((resolve) => setImmediate(resolve));
      const beside = await post('a');
      open({ id: SOURCE } as never);
      expect({ status: beside.status, retry: beside.headers['retry-after'] }).toEqual({ status: 409, retry: '1' });
      expect((await first).status).toBe(200);
    });

    it.each<[string, () => Promise<Source>, number, object]>([
      ['a success', async () => ({ id: SOURCE }) as unknown as Source, 200, { data: { id: SOURCE } }],
      ['a refusal', () => Promise.reject(new NotFound('component', 'x')), 404, { detail: 'component x not found' }],
    ])('keeps the key after a 504, and its repeat gets the late reply: %s', async (_, ending, status, body) => {
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      messages.replyLate(createSource, () => gate.then(ending));
      expect((await post('a')).status).toBe(504);
      expect((await post('a')).status).toBe(409);
      open();
      await new Promise((resolve) => setImmediate(resolve));
      expect(await post('a')).toMatchObject({ status, body, headers: { 'idempotency-replayed': 'true' } });
      expect(messages.requests).toHaveLength(1);
    });

    it('frees the key when the work fails after a 504', async () => {
      messages.replyLate(createSource, () => Promise.reject(new Unavailable('away')));
      expect((await post('a')).status).toBe(504);
      await new Promise((resolve) => setImmediate(resolve));
      expect((await post('a')).status).toBe(504);
      expect(messages.requests).toHaveLength(2);
    });

    it('repeats a 4xx response, and retries after a 5xx response', async () => {
      for (const [error, times] of [
        [new NotFound('component', 'x'), 1],
        [new Unavailable('away'), 2],
      ] as const) {
        messages.requests.length = 0;
        messages.replyTo(createSource, () => {
          throw error;
        });
        const key = String(times);
        const [first, second] = [await post(key), await post(key)];
        expect(second.status).toBe(first.status);
        expect(messages.requests).toHaveLength(times);
      }
    });

    it.each(['', 'a b', 'ä', 'x'.repeat(256)])('is refused with the key %j', async (key) => {
      expect((await post(key)).status).toBe(400);
      expect(messages.requests).toEqual([]);
    });

    it('is accepted without effect by methods other than POST', async () => {
      for (let n = 0; n < 2; n++)
        expect((await send('GET', `/v1/sources/${SOURCE}`, { headers: { 'idempotency-key': '' } })).status).toBe(200);
    });
  });

  describe('with a limit of two requests a minute', () => {
    beforeEach(() => start({ SLUICE_REQUESTS_PER_MINUTE: '2' }));

    it('counts the requests per key, and refuses the third', async () => {
      const get = (authorization: string) => send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } });
      const own = [await get('Bearer my-key'), await get('Bearer my-key'), await get('Bearer my-key')];
      expect(own.map(({ status }) => status)).toEqual([200, 200, 429]);
      expect(own.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['1', '0', '0']);
      expect(Number(own[2]?.headers['retry-after'])).toBeGreaterThan(0);
      expect((await get('Bearer other-key')).status).toBe(200);
      expect((await get('Bearer unknown')).status).toBe(401);
    });
  });

  describe('include and exclude', () => {
    beforeEach(() => start());

    it.each([
      ['?include=id', ['id']],
      ['?exclude=id,active', ['name']],
      ['?include=id,name&exclude=name', ['id']],
      ['?include=nothing', []],
      ['?include=', ['id', 'name', 'active']],
    ])('%s', async (query, fields) => {
      const { body } = await send('GET', `/v1/sources/${SOURCE}${query}`);
      expect(Object.keys(body.data as object)).toEqual(fields);
    });

    it('apply to each item of a list, and do not change page_info', async () => {
      const page_info = { total_count: 1, count: 1, start_cursor: 'a', end_cursor: 'a' };
      messages.replyTo(listWebhooks, () => ({ page_info, data: [{ id: 'wh_1', url: 'x' }] }) as never);
      expect((await send('GET', '/v1/users/me/webhooks?include=id')).body).toEqual({ page_info, data: [{ id: 'wh_1' }] });
    });

    it('are refused before anything changes if they are malformed', async () => {
      const { status } = await send('POST', '/v1/sources', { body: { component_code: 'x', include: { a: 1 } } });
      expect({ status, requests: messages.requests }).toEqual({ status: 400, requests: [] });
    });
  });

  describe('the parameters of a webhook', () => {
    beforeEach(async () => {
      messages.replyTo(createWebhook, (command) => command as never);
      await start();
    });

    it.each([
      ['in the query', '?url=https://a.test&name=n', undefined],
      ['in the body', '', { url: 'https://a.test', name: 'n' }],
      ['in both', '?name=n', { url: 'https://a.test', name: 'body' }],
    ])('are read %s, and the query wins', async (_, query, body) => {
      expect((await send('POST', `/v1/webhooks${query}`, { body })).status).toBe(200);
      expect(messages.requests[0]?.payload).toMatchObject({ owner_id: ME, url: 'https://a.test', name: 'n' });
    });
  });

  describe('a response without content', () => {
    beforeEach(() => start());

    it('is 204, and has no body', async () => {
      messages.replyTo(deleteSource, () => undefined);
      const { status, body } = await send('DELETE', `/v1/sources/${SOURCE}`);
      expect({ status, body }).toEqual({ status: 204, body: undefined });
    });
  });

  describe('a run on demand', () => {
    beforeEach(() => start());

    it.each([
      ['with an event', { event: { n: 1 } }, '{"n":1}'],
      ['with null as its event', { event: null }, 'null'],
      ['without an event', {}, undefined],
    ])('is due at once %s', async (_, body, event) => {
      const response = await send('POST', `/v1/sources/${SOURCE}/run`, { body });
      expect(response).toMatchObject({ status: 202, body: { data: { id: expect.any(String) } } });
      expect(messages.published).toMatchObject([
        { key: ME, payload: { run_id: response.body.data.id, source_id: SOURCE, trigger: 'manual' } },
      ]);
      expect((messages.published[0]?.payload as { event?: string }).event).toBe(event);
    });

    it('is refused for an inactive source', async () => {
      messages.replyTo(getSource, () => ({ active: false }) as Source);
      expect((await send('POST', `/v1/sources/${SOURCE}/run`)).status).toBe(409);
      expect(messages.published).toEqual([]);
    });
  });
});
