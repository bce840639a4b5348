import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { load } from 'js-yaml';
import {
  type Component,
  createComponent,
  type CreateComponent,
  createReplay,
  createSource,
  type CreateSource,
  deleteSource,
  getSource,
  Invalid,
  listWebhooks,
  NotFound,
  type PatchSource,
  patchSource,
  SluiceError,
  type Source,
  type SourceReference,
  TimedOut,
  TooManyRequests,
  Unavailable,
  type UpdateSource,
  updateSource,
  createWebhook,
  updateWebhook,
} from '#contracts';
import { AccountPace, BYTES_PER_UNIT } from '#fairness';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { GuessDelay } from '#service';
import { FakeMessages } from '#testing';
import { FullAccounts } from '#waiting-data';
import { AccountsService } from './accounts/accounts.service.js';
import { IdempotencyInMemory } from './idempotency/idempotency-in-memory-for-tests.js';
import { IdempotencyRepository } from './idempotency/idempotency.repository.js';
import { LateResponses } from './idempotency/idempotent-posts.js';
import { KeysController } from './accounts/keys.controller.js';
import { ComponentsController } from './components/components.controller.js';
import { ConnectionsController } from './connections/connections.controller.js';
import { ReplaysController } from './replays/replays.controller.js';
import { SourcesController } from './sources/sources.controller.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';
import { createHttpApp } from './create-http-app.js';
import { Sharing } from './limits/request-queues.js';
import { FieldsInterceptor } from './http/fields.js';

const ME = 'u_000000000000000001';
const NEIGHBOUR = 'u_000000000000000002';
const SOURCE = 'dc_000000000000000001';
const KEY = { authorization: 'Bearer my-key' };
const silent = createLog('test', 'silent');

describe('the HTTP side of the gateway', () => {
  let app: NestFastifyApplication;
  let messages: FakeMessages;
  let turns: [account: string, units: number][];
  let spent: [account: string, units: number][];
  /** The ids of API keys. */
  let issued: string[];
  const pace = {
    delayRequest: async (account: string, units: number) => void turns.push([account, units]),
    spend: (account: string, units: number) => spent.push([account, units]),
  };
  let variables: Record<string, string | undefined>;
  let refuseFull: (id: string) => void;

  const start = async (changed: Record<string, string> = {}) => {
    variables = Object.fromEntries(Object.keys(changed).map((name) => [name, process.env[name]]));
    Object.assign(process.env, changed);
    // an authenticator that knows five keys
    const accounts = {
      authenticate: async (key: string) =>
        /^(my|other|read|neighbour|suspended)-key$/.test(key)
          ? {
              id: key === 'neighbour-key' ? NEIGHBOUR : ME,
              scope: key === 'read-key' ? 'read' : 'write',
              suspended_at: key === 'suspended-key' ? new Date() : null,
            }
          : undefined,
      issueKey: async (_: string, __: object, id: string) => {
        issued.push(id);
        throw new Unavailable('the connection was lost at COMMIT');
      },
    };
    @Module({
      controllers: [ComponentsController, ConnectionsController, KeysController, ReplaysController, SourcesController, WebhooksController],
      providers: [
        { provide: APP_INTERCEPTOR, useClass: LateResponses },
        { provide: APP_INTERCEPTOR, useClass: FieldsInterceptor },
        { provide: AccountsService, useValue: accounts },
        { provide: IdempotencyRepository, useValue: new IdempotencyInMemory() },
        { provide: Messages, useValue: messages },
        { provide: LOG, useValue: silent },
        { provide: AccountPace, useValue: pace },
        { provide: FullAccounts, useValue: { refuseFull: (id: string) => refuseFull(id) } },
      ],
    })
    class HttpModule {}
    app = await createHttpApp({ module: HttpModule }, silent);
    await app.init();
    await app.getHttpAdapter().getInstance().ready();
  };

  beforeEach(() => {
    turns = [];
    spent = [];
    issued = [];
    refuseFull = () => {};
    messages = new FakeMessages()
      .replyTo(getSource, ({ id }: SourceReference) => ({ id, name: 'one', active: true }) as Source)
      .replyTo(createComponent, ({ id }: CreateComponent) => ({ id }) as Component)
      .replyTo(updateSource, ({ id }: UpdateSource) => ({ id }) as Source)
      .replyTo(patchSource, ({ id }: PatchSource) => ({ id }) as Source)
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
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
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

    it.each([`/v1/sources/${SOURCE}`, '/v1/nothing'])('returns 403 to a request of a suspended account: %s', async (url) => {
      const response = await app.inject({ method: 'GET', url, headers: { authorization: 'Bearer suspended-key' } });
      expect([response.statusCode, response.json()]).toMatchObject([403, { error: 'this account is suspended' }]);
      expect(messages.requests).toEqual([]);
    });

    it('takes the turn of its account, by the size of its body as it was received', async () => {
      await send('GET', `/v1/sources/${SOURCE}`);
      await send('POST', '/v1/sources', { body: { component_code: 'x'.repeat(65_535 - '{"component_code":""}'.length) + 'x' } });
      await send('POST', '/v1/sources', { headers: { 'content-length': '1000000000000' } });
      expect(turns).toEqual([
        [ME, 1],
        [ME, 1 + 65_536 / BYTES_PER_UNIT],
      ]);
    });

    it.each(['{"component_code":"x"}', '{'])('costs its account the time that parsing the body %s takes', async (body) => {
      messages.onReply(() => {});
      await send('POST', '/v1/sources', { body });
      expect(spent).toEqual([[ME, expect.any(Number)]]);
    });

    it('costs its account the bytes that a service replies', async () => {
      const source = { id: SOURCE, name: 'x'.repeat(100_000), active: true };
      messages.replyTo(getSource, () => source as Source);
      await send('GET', `/v1/sources/${SOURCE}`);
      expect(spent).toEqual([[ME, JSON.stringify(source).length / BYTES_PER_UNIT]]);
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

    const connected = async () => {
      if (!app.getHttpServer().listening) await app.listen(0, '127.0.0.1');
      const client = connect((app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
      await once(client, 'connect');
      return client;
    };
    const responseTo = async (client: Socket) => {
      const chunks: Buffer[] = await client.toArray();
      const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n');
      const [line = '', ...headers] = head.split('\r\n');
      return {
        status: Number(line.split(' ')[1]),
        headers: Object.fromEntries(headers.map((each) => each.toLowerCase().split(': '))),
        body,
      };
    };

    it.each([
      [200, 'GET', `/v1/sources/${SOURCE}?x=http://other/`, 'my-key'],
      [302, 'GET', '/', 'my-key'],
      [400, 'GET', `/v1/sources/${SOURCE}?x=%ff`, 'my-key'],
      [401, 'GET', '/v1/nothing', 'unknown'],
      [403, 'DELETE', `/v1/sources/${SOURCE}`, 'read-key'],
      [404, 'GET', '/v1/nothing?x=1', 'my-key'],
      [405, 'GET', '/v1/sources/?x=1', 'my-key'],
    ])('responds with %i to %s %s, also if the target is an absolute URL', async (status, method, path, key) => {
      const head = `host: x\r\naccept: text/html\r\nauthorization: Bearer ${key}\r\nx-request-id: same\r\nconnection: close`;
      const responseFor = async (url: string) => {
        const client = await connected();
        client.write(`${method} ${url} HTTP/1.1\r\n${head}\r\n\r\n`);
        const response = await responseTo(client);
        return { ...response, headers: { ...response.headers, date: null } };
      };
      const relative = await responseFor(path);
      const absolute = await responseFor(`HTTP://x:80${path}`);
      expect(relative).toMatchObject({ status });
      expect(absolute).toEqual(relative);
    });

    describe('a request that cannot be read', () => {
      const get = (url: string, headers: string) => `GET ${url} HTTP/1.1\r\n${headers}\r\n\r\n`;

      it.each([
        ['headers that are too large', 431, get('/v1/users/me', `host: x\r\nx-large: ${'x'.repeat(100_000)}`)],
        ['a URL that is too large', 431, get(`/v1/users/me?x=${'x'.repeat(100_000)}`, 'host: x')],
        ['text that is not HTTP', 400, 'hello\r\n\r\n'],
        ['an invalid header', 400, get('/v1/users/me', 'host: x\r\nbad header: 1')],
        ['an invalid content length', 400, get('/v1/users/me', 'host: x\r\ncontent-length: x')],
        ['no host', 400, get('/v1/users/me', 'connection: close')],
        ['two hosts', 400, get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key\r\nHost: x\r\nconnection: close')],
      ])('because of %s gets %i as a problem, with the headers of all responses', async (_, status, request) => {
        const client = await connected();
        client.write(request);
        const response = await responseTo(client);
        expect(response.status).toBe(status);
        expect(response.headers).toMatchObject({
          ...{ 'content-type': 'application/problem+json', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
          ...{ 'content-length': String(Buffer.byteLength(response.body)), connection: 'close' },
        });
        const problem = JSON.parse(response.body);
        expect(problem).toMatchObject({ type: 'about:blank', status, detail: problem.error, request_id: response.headers['x-request-id'] });
      });

      it.each([
        [417, 'Bearer my-key'],
        [401, 'Bearer unknown'],
      ])('as it expects gets %i with the key "%s"', async (status, authorization) => {
        const client = await connected();
        client.end(get(`/v1/sources/${SOURCE}`, `host: x\r\nauthorization: ${authorization}\r\nexpect: foo`));
        const { headers, ...response } = await responseTo(client);
        expect([response.status, headers['content-type']]).toEqual([status, 'application/problem+json']);
        expect(JSON.parse(response.body)).toMatchObject({ status });
      });

      it('a request that does not arrive in time gets 408, and is not executed when the rest of it comes later', async () => {
        const client = await connected();
        const server = app.getHttpServer();
        client.write('POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-length: 5\r\n\r\n{');
        const [{ socket }] = (await once(server, 'request')) as [IncomingMessage];
        server.emit('clientError', Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
        client.on('error', () => {});
        const response = responseTo(client);
        await once(client, 'data');
        client.write(`   }${get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key')}`);
        expect(await response).toMatchObject({ status: 408, headers: { 'content-type': 'application/problem+json' } });
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(messages.requests).toEqual([]);
      });

      it.each([
        ['a response has begun', { writable: true, _httpMessage: { headersSent: true } }, 1],
        ['the connection is closed', { writable: false }, 1],
        ['the problem has been sent', { writable: false, writableEnded: true }, 0],
      ])('gets nothing once %s', (_, state, destroyed) => {
        const calls = { end: 0, destroy: 0 };
        const socket = { ...state, end: () => calls.end++, destroy: () => calls.destroy++ };
        app.getHttpServer().emit('clientError', new Error('broken'), socket);
        expect(calls).toEqual({ end: 0, destroy: destroyed });
      });
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

    it('serves the same OpenAPI document as JSON and as YAML', async () => {
      const [json, yaml] = [
        await app.inject({ method: 'GET', url: '/openapi.json' }),
        await app.inject({ method: 'GET', url: '/openapi.yaml' }),
      ];
      expect(json.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(yaml.headers['content-type']).toBe('text/yaml; charset=utf-8');
      expect(Object.keys(json.json<{ paths: object }>().paths)).toContain('/v1/sources');
      expect(load(yaml.body)).toEqual(json.json());
    });

    it('returns 404 for files that the documentation does not have', async () => {
      for (const url of ['/docs/nothing.js', '/docs/a/b']) expect((await app.inject({ method: 'GET', url })).statusCode).toBe(404);
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

    it.each(['%FF', '%zz', '%', '%ED%A0%80', 'a%2'])('returns 400 to a query with %s', async (text) => {
      const { status, body } = await send('GET', `/v1/sources/${SOURCE}?include=${text}`);
      expect([status, body.detail]).toEqual([400, 'the query is not percent-encoded UTF-8']);
      expect((await app.inject(`/v1/sources/${SOURCE}?include=${text}`)).statusCode).toBe(401);
    });

    it('decodes a query', async () => {
      expect((await send('GET', `/v1/sources/${SOURCE}?include=%6Ea+me%2C%69d`)).body).toEqual({ data: { id: SOURCE } });
    });

    it.each([
      ['PUT', `/v1/sources/${SOURCE}`, { component_code: 'x', active: null }],
      ['PATCH', `/v1/sources/${SOURCE}`, { active: null }],
      ['PUT', '/v1/webhooks/wh_000000000000000001', { active: null }],
      ['PATCH', '/v1/webhooks/wh_000000000000000001', { active: null }],
    ] as const)('returns 400 to %s %s with %j', async (method, url, body) => {
      const response = await send(method, url, { body });
      expect([response.status, response.body.detail]).toEqual([400, 'active must be true or false']);
      expect(messages.requests).toEqual([]);
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
      [
        'may be of a type with parameters, in any case',
        200,
        '{"component_code":"x"}',
        { 'content-type': 'Application/JSON ; charset=utf-8' },
      ],
      ...['application/jsonlines', 'application/json-seq', 'application/json-patch+json', 'application/merge-patch+json', 'text/json'].map(
        (type): [string, number, unknown, object] => [`is not ${type}`, 415, '{"component_code":"x"}', { 'content-type': type }],
      ),
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

    it.each([
      ['in Latin-1', Buffer.from('{"component_code":"\xe9"}', 'latin1')],
      ['in UTF-16', Buffer.from('\uFEFF{"component_code":"x"}', 'utf16le')],
      ['with a truncated character', Buffer.from('{"component_code":"é"}').subarray(0, -3)],
    ])('%s is refused, because it is not UTF-8', async (_, payload) => {
      const headers = { ...KEY, 'content-type': 'application/json' };
      const response = await app.inject({ method: 'POST', url: '/v1/sources', headers, payload });
      expect([response.statusCode, response.json().detail]).toEqual([400, 'the body is not UTF-8']);
      expect(messages.requests).toEqual([]);
    });

    it.each(['json', ';', 'a/b/c', 'text/json'])('is refused with the types that are possible, if its type is %j', async (type) => {
      const { body } = await send('POST', '/v1/sources', { body: '{}', headers: { 'content-type': type } });
      expect(body).toMatchObject({ status: 415, detail: `the body must be application/json, not ${type}` });
    });

    it('counts as absent when it is empty, regardless of its type', async () => {
      for (const type of ['application/json', 'application/json-seq', 'text/plain'])
        expect((await send('POST', `/v1/sources/${SOURCE}/run`, { body: ' ', headers: { 'content-type': type } })).status).toBe(202);
    });

    it('invalid fields are refused, and each of them is listed', async () => {
      const { status, body } = await send('POST', '/v1/sources', { body: { name: 5, configured_props: [] } });
      expect(status).toBe(400);
      expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(expect.arrayContaining(['name', 'configured_props']));
    });

    it.each<['POST' | 'PUT' | 'PATCH', string, object]>([
      ...(['POST', 'PUT', 'PATCH'] as const).flatMap((method) =>
        [
          { component_id: SOURCE, component_code: 5, component_url: {}, key: 7 },
          { component_code: 'x', component_url: 6, key: 7 },
          { component_url: 'https://a.test', key: ['x'] },
        ].map((body): [typeof method, string, object] => [method, method === 'POST' ? '/v1/sources' : `/v1/sources/${SOURCE}`, body]),
      ),
      ['POST', '/v1/components', { component_code: 'x', component_url: 'a\0' }],
    ])('%s %s is accepted if only fields without precedence are invalid: %j', async (method, url, body) => {
      expect((await send(method, url, { body })).status).toBe(200);
    });

    it.each<[object, string, string]>([
      [{ component_id: 5, key: 'x' }, 'component_id', 'must be a string'],
      [{ component_id: null, component_code: 5, key: 'x' }, 'component_code', 'must be a string'],
      [{ component_url: 6, key: 'x' }, 'component_url', 'must be a string'],
      [{ key: 7 }, 'key', 'must be a string'],
      [{ component_id: '', component_code: 'x' }, 'component_id', 'must not be empty'],
      [{ component_code: '', component_url: 'https://a.test' }, 'component_code', 'must not be empty'],
      [{ component_url: '' }, 'component_url', 'must not be empty'],
      [{ key: '' }, 'key', 'must not be empty'],
    ])('%j is refused because of the field with precedence', async (body, field, problem) => {
      const response = await send('POST', '/v1/sources', { body });
      expect([response.status, response.body.errors]).toEqual([400, [{ field, message: `${field} ${problem}` }]]);
    });

    it('missing fields are refused as required', async () => {
      const { status, body } = await send('POST', '/v1/connections', { body: { name: 'x' } });
      expect([status, body.detail]).toEqual([400, 'app is required; credentials is required']);
    });

    it('fields that the route does not know are refused, and each of them is listed', async () => {
      const { status, body } = await send('POST', '/v1/sources', { body: { component_codes: 'x', owner_id: 'u_000000000000000002' } });
      expect([status, messages.requests]).toEqual([400, []]);
      expect(body.errors).toEqual([
        { field: 'component_codes', message: 'unknown field "component_codes"; did you mean component_code?' },
        { field: 'owner_id', message: expect.stringContaining('unknown field "owner_id"') },
      ]);
    });
  });

  it('accepts bodies of at most 100 000 values and names, because parsing costs more by them than by bytes', async () => {
    await start({ SLUICE_MAX_BODY_BYTES: '2000000' });
    const body = (values: number) => `{"event":[${Array(values).fill('[]').join()}],"text":"${','.repeat(200_000)}"}`;
    const refused = await send('POST', `/v1/sources/${SOURCE}/run`, { body: body(60_000) });
    expect(refused).toMatchObject({ status: 400, body: { detail: 'the body has more than 100000 JSON values and names' } });
    expect((await send('POST', '/v1/sources', { body: body(30_000) })).body.detail).not.toContain('values and names');
  });

  describe('a body in chunks', () => {
    beforeEach(async () => {
      await start();
      await app.listen(0, '127.0.0.1');
    });
    const head = `POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
    const chunks = (text: string, size: number) =>
      (text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []).map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
    const sent = async (body: string) => {
      const client = connect((app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
      await once(client, 'connect');
      await new Promise((resolve) => client.write(head + body, resolve));
      return client;
    };
    const responseTo = async (body: string) => {
      const client = await sent(body);
      const [response] = (await once(client, 'data')) as [Buffer];
      client.destroy();
      return String(response);
    };
    it('a body in chunks of single bytes is read as one in large chunks, and costs more', async () => {
      expect(await responseTo(`${chunks('{"component_code":"x"}', 1)}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 200/);
      expect(messages.requests[0]?.payload).toMatchObject({ component_code: 'x' });
      expect(turns).toEqual([[ME, 1 + (22 * 128) / BYTES_PER_UNIT]]);
    });

    it('is refused with 413 when there are too many of them', async () => {
      expect(await responseTo(chunks(' '.repeat(65_537), 1))).toMatch(/^HTTP\/1.1 413/);
      expect(spent).toEqual([[ME, (65_537 * 128) / BYTES_PER_UNIT]]);
    });

    it('is refused with 429 while others of its account fill the memory that they may use, and no longer', async () => {
      const one = () => responseTo(`${chunks('{"component_code":"x"}', 30)}0\r\n\r\n`);
      const others = await Promise.all(Array.from({ length: 32 }, () => sent(chunks(' '.repeat(2 << 20), 1 << 16))));
      // 200 until the others are received, and 429 until they are gone
      let response = await one();
      while (response.startsWith('HTTP/1.1 200')) response = await one();
      expect(response).toMatch(/^HTTP\/1.1 429[^]*\r\nretry-after: 5\r\n/);
      for (const other of others) other.destroy();
      while (response.startsWith('HTTP/1.1 429')) response = await one();
      expect(response).toMatch(/^HTTP\/1.1 200/);
    });
  });

  describe('a key of scope read', () => {
    beforeEach(() => start({ SLUICE_MAX_BODY_BYTES: '2000' }));
    const READ = { authorization: 'Bearer read-key' };

    it.each([
      ['read', READ, true],
      ['write', KEY, false],
    ])('%s asks for sources with or without their endpoints', async (_, headers, without_endpoints) => {
      await send('GET', `/v1/sources/${SOURCE}`, { headers });
      await send('GET', '/v1/users/me/sources', { headers });
      expect(messages.requests.map(({ payload }) => payload)).toMatchObject([{ without_endpoints }, { without_endpoints }]);
    });

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
      expect(response.headers.ratelimit).toBe(status === 429 ? '"busy";r=0;t=5' : undefined);
    });

    it('is not requested for a malformed id', async () => {
      expect((await send('GET', '/v1/sources/one')).status).toBe(404);
      expect((await send('DELETE', '/v1/sources/wh_000000000000000001')).status).toBe(404);
      expect(messages.requests).toEqual([]);
    });
  });

  describe('of a full account', () => {
    const part = { emitter_id: SOURCE, listener_id: 'wh_000000000000000001', from: 1763715600, to: 1763719200 };
    beforeEach(async () => {
      await start();
      refuseFull = (id) => {
        if (id === ME) throw new TooManyRequests('1 GiB of deliveries wait');
      };
      messages.replyTo(createReplay, () => ({ events: 1 }));
    });

    it.each<[string, object]>([
      [`/v1/sources/${SOURCE}/run`, {}],
      ['/v1/replays', part],
    ])('POST %s is refused with 429 and the reason', async (url, body) => {
      const { status, headers, body: problem } = await send('POST', url, { body });
      expect({ status, retry: headers['retry-after'], detail: problem.detail }).toEqual({
        status: 429,
        retry: '5',
        detail: '1 GiB of deliveries wait',
      });
      expect([messages.requests, messages.published]).toEqual([[], []]);
    });

    it('a replay is counted', async () => {
      expect((await send('POST', '/v1/replays', { body: { ...part, dry_run: true } })).status).toBe(200);
    });

    it('other accounts notice nothing', async () => {
      const headers = { authorization: 'Bearer neighbour-key' };
      expect((await send('POST', `/v1/sources/${SOURCE}/run`, { headers, body: {} })).status).toBe(202);
    });
  });

  describe('a POST with an Idempotency-Key', () => {
    beforeEach(() => start());
    const away = () => {
      throw new Unavailable('away');
    };
    const post = (key: string, body: unknown = { component_code: 'x' }) =>
      send('POST', '/v1/sources', { body, headers: { 'idempotency-key': key } });
    const between = { emitter_id: SOURCE, listener_id: 'wh_000000000000000001', from: 1763715600, to: 1763719200 };

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

    it('is the same with and without a slash at the end of the path, and as an absolute URL', async () => {
      const to = (url: string) => send('POST', url, { body: { component_code: 'x' }, headers: { 'idempotency-key': 'a' } });
      const first = await to('/v1/sources?exclude=name');
      expect((await to('/v1/sources/?exclude=name')).body).toEqual(first.body);
      expect((await to('http://x/v1/sources?exclude=name')).body).toEqual(first.body);
      expect(messages.requests).toHaveLength(1);
      for (const other of ['/v1/sources?exclude=name/', '/v1/sources/']) expect((await to(other)).status).toBe(422);
    });

    it('is refused while the first one is in progress', async () => {
      const { promise: gate, resolve: open } = Promise.withResolvers<Source>();
      messages.replyTo(createSource, () => gate as never);
      const first = post('a');
      await new Promise((resolve) => setImmediate(resolve));
      const beside = await post('a');
      open({ id: SOURCE } as never);
      expect({ status: beside.status, retry: beside.headers['retry-after'] }).toEqual({ status: 409, retry: '9' });
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

    it.each([
      [202, {}],
      [200, { dry_run: true }],
    ])('gets %i for a late reply to a replay, as for one in time: %j', async (status, more) => {
      messages.replyLate(createReplay, async () => ({ events: 3 }));
      const replay = () => send('POST', '/v1/replays', { body: { ...between, ...more }, headers: { 'idempotency-key': 'a' } });
      expect((await replay()).status).toBe(504);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await replay()).toMatchObject({ status, body: { data: { events: 3 } } });
      expect(messages.requests).toHaveLength(1);
    });

    it.each<[string, Error]>([
      ['the work fails', new Unavailable('away')],
      ['the request turns out to be invalid', new Invalid('the component has no name')],
    ])('frees the key when %s after a 504', async (_, error) => {
      messages.replyLate(createSource, () => Promise.reject(error));
      expect((await post('a')).status).toBe(504);
      await new Promise((resolve) => setImmediate(resolve));
      expect((await post('a')).status).toBe(504);
      expect(messages.requests).toHaveLength(2);
    });

    it.each<[string, number, Error]>([
      ['returns 404 again', 1, new NotFound('component', 'x')],
      ['returns 409 again', 1, new SluiceError('conflict', 'taken')],
      ['is executed again after a 400', 2, new Invalid('the component has no name')],
      ['is executed again after a 429', 2, new SluiceError('too_many_requests', 'slower')],
      ['is executed again after a 503', 2, new Unavailable('away')],
    ])('%s', async (_, times, error) => {
      messages.replyTo(createSource, () => {
        throw error;
      });
      const [first, second] = [await post('a'), await post('a')];
      expect(second.status).toBe(first.status);
      expect(messages.requests).toHaveLength(times);
    });

    it.each<[string, object | undefined]>([
      ['/v1/sources', { component_code: 'x' }],
      ['/v1/components', { component_code: 'x' }],
      ['/v1/webhooks', { url: 'https://example.com' }],
      ['/v1/webhooks/wh_000000000000000001/secret/rotate', undefined],
      ['/v1/connections', { app: 'slack', credentials: { token: 't' } }],
      ['/v1/replays', between],
      ['/v1/keys', { name: 'ci' }],
      [`/v1/sources/${SOURCE}/run`, {}],
    ])('makes the same after a failure as at first, which may take effect after all: %s', async (url, body) => {
      const made = async (key: string): Promise<unknown[]> => {
        await send('POST', url, { body, headers: { 'idempotency-key': key } });
        const { payload } = [...messages.requests, ...messages.published].at(-1) ?? {};
        return [{ ...payload, due_at_ms: 0 }, issued.at(-1)];
      };
      messages.replyTo(createSource, away).replyTo(createComponent, away);
      messages.publish = async ({ name }, payload, key) => {
        messages.published.push({ name, payload, key });
        away();
      };
      const first = await made('a');
      expect(await made('a')).toEqual(first);
      expect(await made('b')).not.toEqual(first);
      expect(messages.requests.length + issued.length).toBeGreaterThanOrEqual(3);
    });

    it('an invalid POST can be corrected under the same key', async () => {
      expect((await post('a', { component_code: 5 })).status).toBe(400);
      expect((await post('a')).status).toBe(200);
      expect((await post('a')).headers['idempotency-replayed']).toBe('true');
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

  describe('the requests of an account that are in progress', () => {
    let replies: (() => void)[];
    const waitsFor = async <Reply>(reply: Reply): Promise<Reply> => {
      await new Promise<void>((resolve) => replies.push(resolve));
      return reply;
    };
    const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
    const get = (authorization = 'Bearer my-key') => send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } });
    const replyToAll = async () => {
      for (; replies.length > 0; await settled()) for (const reply of replies.splice(0)) reply();
    };

    beforeEach(async () => {
      replies = [];
      messages.replyTo(getSource, ({ id }: SourceReference) => waitsFor({ id } as Source) as never);
      messages.replyTo(createSource, ({ id }: CreateSource) => waitsFor({ id } as Source) as never);
      await start();
    });

    /** Another account sends a request, too. */
    const share = async () => {
      const responses = [get('Bearer neighbour-key'), get()];
      await settled();
      await replyToAll();
      await Promise.all(responses);
      messages.requests.length = 0;
    };

    it('are at most 64 while no other account sends requests', async () => {
      const responses = Array.from({ length: 70 }, () => get());
      await settled();
      expect(messages.requests).toHaveLength(64);
      await replyToAll();
      expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(70).fill(200));
    });

    it('are at most eight; further ones wait, and those of other accounts do not', async () => {
      await share();
      const responses = Array.from({ length: 20 }, () => get());
      await settled();
      expect(messages.requests).toHaveLength(8);
      const neighbour = get('Bearer neighbour-key');
      await settled();
      expect(messages.requests).toHaveLength(9);
      replies[0]!();
      await settled();
      expect(messages.requests).toHaveLength(10);
      await replyToAll();
      expect((await Promise.all([...responses, neighbour])).map(({ status }) => status)).toEqual(Array(21).fill(200));
    });

    it('do not wait for those that wait long by nature', async () => {
      await share();
      const slow = Array.from({ length: 30 }, () => send('POST', '/v1/sources', { body: { component_code: 'x' } }));
      await settled();
      expect(messages.requests).toHaveLength(16);
      const usual = get();
      await settled();
      expect(messages.requests).toHaveLength(17);
      await replyToAll();
      expect((await Promise.all([...slow, usual])).map(({ status }) => status)).toEqual(Array(31).fill(200));
    });

    it('include one of each connection, however many it pipelines', async () => {
      await app.listen(0, '127.0.0.1');
      const client = connect((app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').resume();
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`.repeat(20));
      while (messages.requests.length === 0) await settled();
      const [other] = [get(), await settled()];
      expect(messages.requests).toHaveLength(2);
      await replyToAll();
      expect({ other: (await other).status, handled: messages.requests.length }).toEqual({ other: 200, handled: 21 });
      client.destroy();
    });

    it('are refused with 429 while a thousand wait', async () => {
      await share();
      const responses = Array.from({ length: 1009 }, () => get());
      const { status, headers } = await Promise.race(responses);
      expect(status).toBe(429);
      expect(headers).toMatchObject({ 'retry-after': '5', ratelimit: '"busy";r=0;t=5' });
      await replyToAll();
      expect((await Promise.all(responses)).filter(({ status }) => status === 200)).toHaveLength(1008);
    });

    it('do not include one whose client disconnects while it waits', async () => {
      await share();
      const responses = Array.from({ length: 8 }, () => get());
      await settled();
      await app.listen(0, '127.0.0.1');
      const client = connect((app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`);
      await once(app.getHttpServer(), 'request');
      client.destroy();
      await settled();
      await replyToAll();
      expect((await Promise.all([...responses])).map(({ status }) => status)).toEqual(Array(8).fill(200));
      expect(messages.requests).toHaveLength(8);
    });

    it('include those whose responses the client does not read', async () => {
      messages.replyTo(getSource, ({ id }: SourceReference) => ({ id, name: 'x'.repeat(8 << 20) }) as Source);
      // however long the large responses take
      jest.spyOn(Sharing.prototype, 'isAlone', 'get').mockReturnValue(false);
      await app.listen(0, '127.0.0.1');
      const clients = Array.from({ length: 9 }, () => {
        const client = connect((app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').pause();
        client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\n\r\n`);
        return client;
      });
      while (messages.requests.length < 8) await settled();
      await settled();
      expect(messages.requests).toHaveLength(8);
      clients[0]!.destroy();
      while (messages.requests.length < 9) await settled();
      for (const client of clients) client.destroy();
      jest.restoreAllMocks();
    });
  });

  it('delays the response to a wrong key if there are many, by the address of the client', async () => {
    const guesses = jest.spyOn(GuessDelay.prototype, 'pass');
    await start();
    const get = (authorization: string) =>
      app.inject({ url: `/v1/sources/${SOURCE}`, headers: { authorization }, remoteAddress: '192.0.2.1' });
    expect((await get('Bearer my-key')).statusCode).toBe(200);
    expect(guesses).not.toHaveBeenCalled();
    const delayed = Promise.withResolvers<void>();
    guesses.mockReturnValue(delayed.promise);
    const response = get('Bearer unknown');
    expect(await Promise.race([response, get('Bearer my-key')])).toMatchObject({ statusCode: 200 });
    delayed.resolve();
    expect((await response).statusCode).toBe(401);
    expect(guesses.mock.calls).toEqual([['192.0.2.1']]);
    guesses.mockRestore();
  });

  it('limits its connections, and those that a client does not use', async () => {
    await start({ SLUICE_MAX_CONNECTIONS: '10' });
    const { maxConnections, timeout } = app.getHttpServer();
    expect({ maxConnections, timeout }).toEqual({ maxConnections: 10, timeout: 30_000 });
  });

  describe('with a limit of two requests a minute', () => {
    beforeEach(() => start({ SLUICE_REQUESTS_PER_MINUTE: '2' }));

    it('counts the requests per account, whichever key they have, and refuses the third', async () => {
      const get = (authorization: string) => send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } });
      const own = [await get('Bearer my-key'), await get('Bearer other-key'), await get('Bearer my-key')];
      expect(own.map(({ status }) => status)).toEqual([200, 200, 429]);
      expect(own.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['1', '0', '0']);
      expect(Number(own[2]?.headers['retry-after'])).toBeGreaterThan(0);
      expect((await get('Bearer neighbour-key')).status).toBe(200);
      expect((await get('Bearer unknown')).status).toBe(401);
    });

    it('states both that limit and the one that refuses a request for another reason', async () => {
      messages.replyTo(getSource, () => {
        throw new SluiceError('too_many_requests', 'slower');
      });
      const { status, headers } = await send('GET', `/v1/sources/${SOURCE}`);
      expect({ status, policy: headers['ratelimit-policy'] }).toEqual({ status: 429, policy: '"default";q=2;w=60, "busy";q=0;w=5' });
      expect(headers.ratelimit).toMatch(/^"default";r=1;t=\d+, "busy";r=0;t=5$/);
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

    it('have a rate limit of digits in the query, and an integer or null in the body', async () => {
      messages.replyTo(updateWebhook, (command) => command as never);
      const body = { url: 'https://a.test' };
      expect(await send('POST', '/v1/webhooks?rate_limit=5', { body })).toMatchObject({ status: 200, body: { data: { rate_limit: 5 } } });
      for (const text of ['true', '0x10', '1e1', '%205%20', '1.0', '', '0'])
        expect((await send('POST', `/v1/webhooks?rate_limit=${text}`, { body })).status).toBe(400);
      const put = (rate_limit: unknown) => send('PUT', '/v1/webhooks/wh_000000000000000001', { body: { rate_limit } });
      for (const value of [5, null]) expect(await put(value)).toMatchObject({ status: 200, body: { data: { rate_limit: value } } });
      for (const value of [true, '5', '0x10', ' 5 ', [5], {}, 1.5, 0, 10_001])
        expect(await put(value)).toMatchObject({ status: 400, body: { errors: [{ field: 'rate_limit' }] } });
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
      expect((messages.published[0]!.payload as { event?: string }).event).toBe(event);
    });

    it('is refused for an inactive source', async () => {
      messages.replyTo(getSource, () => ({ active: false }) as Source);
      expect((await send('POST', `/v1/sources/${SOURCE}/run`)).status).toBe(409);
      expect(messages.published).toEqual([]);
    });
  });
});
