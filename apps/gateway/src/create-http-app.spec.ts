import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { gunzipSync } from 'node:zlib';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { load } from 'js-yaml';
import { secondsToReset } from '#config';
import {
  admitRun,
  type Component,
  createReplay,
  createWebhook,
  cursorOf,
  deleteSource,
  getRegisteredComponent,
  getSource,
  Invalid,
  listRegistry,
  listSources,
  listWebhooks,
  NotFound,
  pageOf,
  type RegisteredComponent,
  SluiceError,
  type Source,
  TimedOut,
  TooManyRequests,
  Unavailable,
  updateWebhook,
} from '#contracts';
import { BYTES_PER_UNIT } from '#fairness';
import { GuessDelay, letClientsLeave } from '#http-server';
import { AccountsService } from './accounts/accounts.service.js';
import { HttpAppForTests, KEY, ME, SOURCE } from './http-app-for-tests.js';

const COMPONENT = 'sc_000000000000000001';
const http = new HttpAppForTests();
beforeEach(() => http.reset());
afterEach(() => http.close());

describe('the HTTP side of the gateway', () => {
  it.each([
    ['nothing', ''],
    ['a part of a request', `POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-length: 10\r\n\r\n1`],
  ])('stops although a client has sent %s', async (_, part) => {
    await http.start();
    await http.app.listen(0, '127.0.0.1');
    const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    await once(client, 'connect');
    client.write(part);
    await http.app.close();
    client.destroy();
  });

  describe('before a controller is reached', () => {
    beforeEach(() => http.start());

    it('shows the documentation to browsers at /, and 404 to programs', async () => {
      const browser = await http.app.inject({ method: 'GET', url: '/', headers: { accept: 'text/html,*/*;q=0.8' } });
      expect([browser.statusCode, browser.headers.location]).toEqual([302, '/docs']);
      expect((await http.app.inject({ method: 'GET', url: '/', headers: { accept: '*/*' } })).statusCode).toBe(404);
    });

    it.each([
      ['no key', '/v1/sources/x', {}],
      ['an unknown key', '/v1/sources/x', { authorization: 'Bearer unknown' }],
      ['another scheme', '/v1/sources/x', { authorization: 'Basic bXkta2V5' }],
      ['no key for a path that does not exist', '/v1/nothing', {}],
      ['no key for a path that is written in another way', '/%761/sources/x', {}],
    ])('returns 401 to a request with %s', async (_, url, headers) => {
      const response = await http.app.inject({ method: 'GET', url, headers });
      expect(response.statusCode).toBe(401);
      expect(response.headers).toMatchObject({ 'www-authenticate': 'Bearer', 'content-type': 'application/problem+json' });
      expect(http.messages.requests).toEqual([]);
    });

    it.each([`/v1/sources/${SOURCE}`, '/v1/nothing'])('returns 403 to a request of a suspended account: %s', async (url) => {
      const response = await http.app.inject({ method: 'GET', url, headers: { authorization: 'Bearer suspended-key' } });
      expect([response.statusCode, response.json()]).toMatchObject([403, { error: 'this account is suspended' }]);
      expect(http.messages.requests).toEqual([]);
    });

    it('takes the turn of its account, by the size of its body as it was received', async () => {
      await http.send('GET', `/v1/sources/${SOURCE}`);
      await http.send('POST', '/v1/sources', { body: { component_code: 'x'.repeat(65_535 - '{"component_code":""}'.length) + 'x' } });
      await http.send('POST', '/v1/sources', { headers: { 'content-length': '1000000000000' } });
      expect(http.turns).toEqual([
        [ME, 1],
        [ME, 3 + 65_536 / BYTES_PER_UNIT],
      ]);
    });

    it.each(['{"component_code":"x"}', '{'])('costs its account the time that parsing the body %s takes', async (body) => {
      http.messages.onReply(() => {});
      await http.send('POST', '/v1/sources', { body });
      expect(http.spent).toEqual([[ME, expect.any(Number)]]);
    });

    it('costs its account the bytes that a service replies', async () => {
      const source = { id: SOURCE, name: 'x'.repeat(100_000), active: true };
      http.messages.replyTo(getSource, () => source as Source);
      await http.send('GET', `/v1/sources/${SOURCE}`);
      expect(http.spent).toEqual([[ME, JSON.stringify(source).length / BYTES_PER_UNIT]]);
    });

    it('costs its account eight times as much for a list of sources, which the catalog decrypts', async () => {
      const page = pageOf([{ id: SOURCE, name: 'x'.repeat(1000) } as unknown as Source], 1, ({ id }) => cursorOf(id));
      http.messages.replyTo(listSources, () => page);
      await http.send('GET', '/v1/users/me/sources');
      expect(http.spent[0]).toEqual([ME, (8 * JSON.stringify(page).length) / BYTES_PER_UNIT]);
    });

    it('costs its account a page of the registry, as a list of sources', async () => {
      const page = pageOf([{ id: COMPONENT, description: 'x'.repeat(1000) } as unknown as RegisteredComponent], 1, ({ id }) =>
        cursorOf(id),
      );
      http.messages.replyTo(listRegistry, () => page);
      await http.send('GET', '/v1/registry');
      expect(http.spent[0]).toEqual([ME, (8 * JSON.stringify(page).length) / BYTES_PER_UNIT]);
    });

    it('costs its account a component of the registry', async () => {
      const component = { id: COMPONENT, code: 'x'.repeat(100_000) } as unknown as Component;
      http.messages.replyTo(getRegisteredComponent, () => component);
      await http.send('GET', '/v1/components/registry/timer');
      expect(http.spent).toEqual([[ME, JSON.stringify(component).length / BYTES_PER_UNIT]]);
    });

    it('reads a refused body to its end, so that the client can finish sending and use the connection again', async () => {
      await http.app.listen(0, '127.0.0.1');
      const { port } = http.app.getHttpServer().address() as AddressInfo;
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

    it('closes the connection of a client that sends another request together with one that offers another protocol', async () => {
      const client = await connected();
      const head = 'host: x\r\nauthorization: Bearer my-key';
      const path = `/v1/sources/${SOURCE}`;
      client.write(`GET ${path} HTTP/1.1\r\n${head}\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\nGET ${path} HTTP/1.1\r\n${head}\r\n\r\n`);
      const responses = Buffer.concat(await client.toArray()).toString();
      expect(responses.match(/^HTTP\/1.1 200|^connection: close/gim)).toHaveLength(2);
      expect(http.messages.requests).toHaveLength(1);
    });

    const connected = async () => {
      if (!http.app.getHttpServer().listening) await http.app.listen(0, '127.0.0.1');
      const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1');
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
      [400, 'that is not JSON', 'application/json', '{'],
      [415, 'of another type', 'text/plain', 'x'],
    ])('keeps the connection of a client after %i to a body %s', async (status, _, type, body) => {
      const client = await connected();
      const head = 'host: x\r\nauthorization: Bearer my-key';
      client.write(`POST /v1/sources HTTP/1.1\r\n${head}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      client.write(`GET /v1/sources/${SOURCE} HTTP/1.1\r\n${head}\r\nconnection: close\r\n\r\n`);
      const responses = Buffer.concat(await client.toArray()).toString();
      expect([...responses.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, code]) => Number(code))).toEqual([status, 200]);
    });

    it.each([
      ['100 Continue', 200, '/v1/sources', 'my-key', 22],
      ['nothing', 401, '/v1/sources', 'unknown', 22],
      ['nothing', 404, '/v1/nothing', 'my-key', 22],
      ['nothing', 413, '/v1/sources', 'my-key', 5_000_000],
    ])('sends %s before %i to a client that expects 100 Continue', async (before, status, url, key, length) => {
      const client = await connected();
      const head = `host: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}`;
      client.write(`POST ${url} HTTP/1.1\r\n${head}\r\nexpect: 100-continue\r\n\r\n`);
      const [first] = (await once(client, 'data')) as [Buffer];
      if (before === 'nothing') return expect(String(first)).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*\r\nconnection: close\r\n`, 'i'));
      expect(String(first)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
      client.end('{"component_code":"x"}');
      expect(await responseTo(client)).toMatchObject({ status });
    });

    it('closes the connection after a body of the wrong type while clients are asked to leave', async () => {
      const client = await connected();
      const leaving = letClientsLeave(http.app.getHttpServer(), 10_000);
      client.write('POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-length: 1\r\n\r\n{');
      expect(await responseTo(client)).toMatchObject({ status: 415, headers: { connection: 'close' } });
      await leaving;
    });

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
        ['an unknown method', 501, 'FOO /v1/users/me HTTP/1.1\r\nhost: x\r\n\r\n'],
        ['an invalid content length', 400, get('/v1/users/me', 'host: x\r\ncontent-length: x')],
        ['no host', 400, get('/v1/users/me', 'connection: close')],
        ...['http://', 'https://', 'http:///v1', 'http://?a'].map((target): [string, number, string] => [
          `the target ${target}`,
          404,
          get(target, 'host: x\r\nconnection: close'),
        ]),
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

      it('a request with two API keys gets 401, even if both are valid', async () => {
        const client = await connected();
        client.end(get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key\r\nAuthorization: Bearer my-key'));
        const response = await responseTo(client);
        expect(response.headers['www-authenticate']).toMatch(/^bearer$/i);
        expect(JSON.parse(response.body)).toMatchObject({ status: 401, detail: 'the header Authorization must be sent once' });
      });

      it('a request with another transfer coding than chunks gets 501', async () => {
        const client = await connected();
        client.end(
          get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key\r\ntransfer-encoding: gzip, chunked') + '0\r\n\r\n',
        );
        const response = await responseTo(client);
        expect(JSON.parse(response.body)).toMatchObject({ status: 501, detail: 'the header Transfer-Encoding can only be chunked' });
      });

      it('a request that does not arrive in time gets 408, and is not executed when the rest of it comes later', async () => {
        const client = await connected();
        const server = http.app.getHttpServer();
        client.write('POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-length: 5\r\n\r\n{');
        const [{ socket }] = (await once(server, 'request')) as [IncomingMessage];
        server.emit('clientError', Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
        client.on('error', () => {});
        const response = responseTo(client);
        await once(client, 'data');
        client.write(`   }${get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key')}`);
        expect(await response).toMatchObject({ status: 408, headers: { 'content-type': 'application/problem+json' } });
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(http.messages.requests).toEqual([]);
      });

      it.each([
        ['bytes that are not HTTP', 'x}', null],
        ['a request that does not arrive in time', 'POST /v1/sources HTTP/1.1\r\nhost: x\r\n', 'ERR_HTTP_REQUEST_TIMEOUT'],
      ])('leaves the response to the request before it: %s', async (_, bytes, code) => {
        const client = await connected();
        const server = http.app.getHttpServer();
        const { promise, resolve } = Promise.withResolvers<unknown>();
        http.messages.replyTo(getSource, () => promise as unknown as Source);
        const errors: unknown[] = [];
        server.on('clientError', (error: Error) => errors.push(error));
        client.write(get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key') + bytes);
        const [{ socket }] = (await once(server, 'request')) as [IncomingMessage];
        while (http.messages.requests.length === 0) await new Promise((done) => setTimeout(done, 5));
        if (code !== null) server.emit('clientError', Object.assign(new Error('timeout'), { code }), socket);
        else client.write('more');
        const response = responseTo(client);
        await new Promise((done) => setTimeout(done, 50));
        expect(errors.length).toBeGreaterThan(0);
        resolve({ id: SOURCE, active: true });
        expect(await response).toMatchObject({ status: 200, headers: { connection: 'close' } });
      });

      it('leaves the rest of a response that has begun, and then closes the connection', async () => {
        const client = await connected();
        http.messages.replyTo(getSource, () => ({ id: SOURCE, name: 'x'.repeat(30_000_000), active: true }) as unknown as Source);
        client.write(get(`/v1/sources/${SOURCE}`, 'host: x\r\nauthorization: Bearer my-key'));
        await once(client, 'readable');
        client.write('x}');
        expect((await responseTo(client)).body.length).toBeGreaterThan(30_000_000);
      });

      it.each([
        ['the response to it has begun', { writable: true, _httpMessage: { headersSent: true, req: { complete: false } } }, 1],
        ['the connection is closed', { writable: false }, 1],
        ['the problem has been sent', { writable: false, writableEnded: true }, 0],
      ])('gets nothing once %s', (_, state, destroyed) => {
        const calls = { end: 0, destroy: 0 };
        const socket = { ...state, end: () => calls.end++, destroy: () => calls.destroy++ };
        http.app.getHttpServer().emit('clientError', new Error('broken'), socket);
        expect(calls).toEqual({ end: 0, destroy: destroyed });
      });
    });

    it('ends each JSON body with a line break, counts it in content-length, and sends a repeated response byte for byte', async () => {
      const [found, unknown, head] = [
        await http.app.inject({ method: 'GET', url: `/v1/sources/${SOURCE}`, headers: KEY }),
        await http.app.inject({ method: 'GET', url: '/v1/nothing', headers: KEY }),
        await http.app.inject({ method: 'HEAD', url: `/v1/sources/${SOURCE}`, headers: KEY }),
      ];
      for (const { body, headers } of [found, unknown]) {
        expect(body).toMatch(/^[^\n]*\}\n$/);
        expect(headers['content-length']).toBe(String(Buffer.byteLength(body)));
      }
      expect(head.headers['content-length']).toBe(found.headers['content-length']);
      const post = () =>
        http.app.inject({
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
      for (const url of ['/docs', `/v1/sources/${SOURCE}`, '/v1/nothing']) {
        const { headers } = await http.app.inject({ method: 'GET', url, headers: KEY });
        expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' });
        expect(headers['content-security-policy']).toMatch(/default-src 'none'; script-src 'self';.* frame-ancestors 'none'$/);
      }
    });

    it('serves the same OpenAPI document as JSON and as YAML', async () => {
      const [json, yaml] = [
        await http.app.inject({ method: 'GET', url: '/openapi.json' }),
        await http.app.inject({ method: 'GET', url: '/openapi.yaml' }),
      ];
      expect(json.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(yaml.headers['content-type']).toBe('text/yaml; charset=utf-8');
      expect(Object.keys(json.json<{ paths: object }>().paths)).toContain('/v1/sources');
      expect(load(yaml.body)).toEqual(json.json());
    });

    it('sends the OpenAPI document compressed if the client accepts that, and 304 if the client has it', async () => {
      for (const url of ['/openapi.json', '/openapi.yaml']) {
        const get = (headers = {}) => http.app.inject({ method: 'GET', url, headers });
        const [plain, compressed, refused] = [
          await get(),
          await get({ 'accept-encoding': 'br;q=1.0, gzip;q=0.8' }),
          await get({ 'accept-encoding': 'gzip;q=0' }),
        ];
        expect(compressed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding', 'cache-control': 'no-cache' });
        expect(plain.headers).toMatchObject({ vary: 'accept-encoding', 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' });
        expect(gunzipSync(compressed.rawPayload)).toEqual(plain.rawPayload);
        expect(plain.body).toMatch(/[^\n]\n$/);
        expect(compressed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 5);
        for (const { headers } of [plain, refused]) expect(headers['content-encoding']).toBeUndefined();
        const etag = String(plain.headers.etag);
        for (const list of [`"other", ${etag}`, etag.replace('W/', ''), '*']) {
          const known = await get({ 'if-none-match': list });
          expect([list, known.statusCode, known.body]).toEqual([list, 304, '']);
        }
      }
    });

    it('shows the OpenAPI document in the documentation, which does not contain it again', async () => {
      const { body } = await http.app.inject({ method: 'GET', url: '/docs/swagger-ui-init.js' });
      expect(body).toContain('"swaggerUrl": "/openapi.json"');
      // otherwise, the page shows a badge of a validator on the internet
      expect(body).toContain('"validatorUrl": null');
      expect(body.length).toBeLessThan(5000);
    });

    it('returns 404 for files that the documentation does not have', async () => {
      for (const url of ['/docs/nothing.js', '/docs/a/b']) expect((await http.app.inject({ method: 'GET', url })).statusCode).toBe(404);
    });

    it('serves documentation that complies with the policy: without inline scripts', async () => {
      const { body } = await http.app.inject({ method: 'GET', url: '/docs' });
      const scripts = [...body.matchAll(/<script([^>]*)>([^<]*)/g)];
      expect(scripts.length).toBeGreaterThan(0);
      for (const [, attributes, text] of scripts) expect([attributes, text?.trim()]).toEqual([expect.stringMatching(/src="\.?\/docs/), '']);
      expect(body).not.toMatch(/ on\w+=|javascript:/);
    });

    it.each(['bearer my-key', 'Bearer  my-key '])('accepts the header "Authorization: %s"', async (authorization) => {
      expect((await http.send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } })).status).toBe(200);
    });

    it.each<[number, 'GET' | 'POST' | 'PUT', string, string | undefined]>([
      [404, 'GET', '/v1/nothing', undefined],
      [405, 'GET', '/v1/sources', 'POST'],
      [405, 'PUT', `/v1/sources/${SOURCE}/run`, 'POST'],
      [405, 'POST', `/v1/sources/${SOURCE}/`, 'DELETE, GET, HEAD, PATCH, PUT'],
    ])('returns %i to %s %s', async (status, method, url, allow) => {
      const response = await http.send(method, url);
      expect({ status: response.status, allow: response.headers.allow }).toEqual({ status, allow });
      expect(response.body).toMatchObject({ type: 'about:blank', status, detail: response.body.error });
    });

    it.each(['%FF', '%zz', '%', '%ED%A0%80', 'a%2'])('returns 400 to a query with %s', async (text) => {
      const { status, body } = await http.send('GET', `/v1/sources/${SOURCE}?include=${text}`);
      expect([status, body.detail]).toEqual([400, 'the query is not percent-encoded UTF-8']);
      expect((await http.app.inject(`/v1/sources/${SOURCE}?include=${text}`)).statusCode).toBe(401);
    });

    it('decodes a query', async () => {
      expect((await http.send('GET', `/v1/sources/${SOURCE}?include=%6Ea+me%2C%69d`)).body).toEqual({ data: { id: SOURCE } });
    });

    it.each([
      ['PUT', `/v1/sources/${SOURCE}`, { component_code: 'x', active: null }],
      ['PATCH', `/v1/sources/${SOURCE}`, { active: null }],
      ['PUT', '/v1/webhooks/wh_000000000000000001', { active: null }],
      ['PATCH', '/v1/webhooks/wh_000000000000000001', { active: null }],
    ] as const)('returns 400 to %s %s with %j', async (method, url, body) => {
      const response = await http.send(method, url, { body });
      expect([response.status, response.body.detail]).toEqual([400, 'active must be true or false']);
      expect(http.messages.requests).toEqual([]);
    });

    it.each<['GET' | 'POST' | 'PUT' | 'PATCH', string, unknown, object]>([
      ['POST', '/v1/webhooks/x/recover?since=x', undefined, {}],
      ['POST', '/v1/webhooks/x/recover', {}, {}],
      ['PUT', '/v1/sources/x', {}, {}],
      ['PUT', '/v1/sources/x', undefined, {}],
      ['PATCH', '/v1/sources/x', { component_id: null }, {}],
      ['POST', '/v1/components/%00/props/x/options', { page: -1 }, {}],
      ['GET', '/v1/sources/x/sse', undefined, { 'last-event-id': 'x' }],
    ])('returns 400 before 404 to %s %s with the body %j and the headers %j', async (method, url, body, headers) => {
      expect((await http.send(method, url, { body, headers })).status).toBe(400);
    });

    it.each<['GET' | 'POST' | 'PUT' | 'PATCH', string, unknown]>([
      ['POST', '/v1/webhooks/x/recover?since=1', undefined],
      ['PUT', '/v1/sources/x', { key: 'x' }],
      ['PATCH', '/v1/sources/x', undefined],
      ['POST', '/v1/components/%00/props/x/options', undefined],
      ['GET', '/v1/components/%00', undefined],
      ['GET', '/v1/sources/x/sse', undefined],
    ])('returns 404 to %s %s with %j, because of the id alone', async (method, url, body) => {
      expect((await http.send(method, url, { body })).status).toBe(404);
    });

    it('names the list when GET is sent to the route that creates its items', async () => {
      expect((await http.send('GET', '/v1/sources/')).body.detail).toContain('/v1/users/me/sources');
    });

    it.each([
      ['a given request id', 'my-id.1', /^my-id\.1$/],
      ['a new id instead of one that could split a log line', 'a b', /^[0-9a-f-]{36}$/],
      ['a new id instead of one that is too long', 'x'.repeat(129), /^[0-9a-f-]{36}$/],
    ])('names the request by %s', async (_, id, expected) => {
      const { headers, body } = await http.send('GET', '/v1/nothing', { headers: { 'x-request-id': id } });
      expect(headers['x-request-id']).toMatch(expected);
      expect(body.request_id).toBe(headers['x-request-id']);
    });
  });

  describe('a key of scope read', () => {
    beforeEach(() => http.start({ SLUICE_MAX_BODY_BYTES: '2000' }));
    const READ = { authorization: 'Bearer read-key' };

    it.each([
      ['read', READ, true],
      ['write', KEY, false],
    ])('%s asks for sources with or without their endpoints', async (_, headers, without_endpoints) => {
      await http.send('GET', `/v1/sources/${SOURCE}`, { headers });
      await http.send('GET', '/v1/users/me/sources', { headers });
      expect(http.messages.requests.map(({ payload }) => payload)).toMatchObject([{ without_endpoints }, { without_endpoints }]);
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
      const response = await http.send(method, url, { body, headers: { ...READ, ...headers } });
      expect(response.status).toBe(status);
      if (status === 403) expect([response.body.detail, http.messages.requests]).toEqual([expect.stringContaining('scope read'), []]);
    });
  });

  describe('the error of a service', () => {
    beforeEach(() => http.start());

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
      http.messages.replyTo(getSource, () => {
        throw error;
      });
      const response = await http.send('GET', `/v1/sources/${SOURCE}`);
      expect(response.status).toBe(status);
      expect(response.body).toMatchObject({ status, ...shown });
      expect(JSON.stringify(response.body)).not.toContain('secret');
      expect(response.headers['retry-after']).toBe([429, 503].includes(status) ? '5' : undefined);
      expect(response.headers.ratelimit).toBe(status === 429 ? '"busy";r=0;t=5' : undefined);
    });

    it('is not requested for a malformed id', async () => {
      expect((await http.send('GET', '/v1/sources/one')).status).toBe(404);
      expect((await http.send('DELETE', '/v1/sources/wh_000000000000000001')).status).toBe(404);
      expect(http.messages.requests).toEqual([]);
    });
  });

  describe('of a full account', () => {
    const part = { emitter_id: SOURCE, listener_id: 'wh_000000000000000001', from: 1763715600, to: 1763719200 };
    beforeEach(async () => {
      await http.start();
      http.refuseFull = (id) => {
        if (id === ME) throw new TooManyRequests('1 GiB of deliveries wait');
      };
      http.messages.replyTo(createReplay, () => ({ events: 1 }));
    });

    it.each<[string, object]>([
      [`/v1/sources/${SOURCE}/run`, {}],
      ['/v1/replays', part],
    ])('POST %s is refused with 429 and the reason', async (url, body) => {
      const { status, headers, body: problem } = await http.send('POST', url, { body });
      expect({ status, retry: headers['retry-after'], detail: problem.detail }).toEqual({
        status: 429,
        retry: '5',
        detail: '1 GiB of deliveries wait',
      });
      expect([http.messages.requests, http.messages.published]).toEqual([[], []]);
    });

    it('a replay is counted', async () => {
      expect((await http.send('POST', '/v1/replays', { body: { ...part, dry_run: true } })).status).toBe(200);
    });

    it('other accounts notice nothing', async () => {
      const headers = { authorization: 'Bearer neighbour-key' };
      expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { headers, body: {} })).status).toBe(202);
    });
  });

  describe('for a client without an account', () => {
    const from = (url: string, headers = {}) => http.app.inject({ url, headers, remoteAddress: '192.0.2.1' });
    afterEach(() => void jest.restoreAllMocks());

    it.each([
      ['a wrong key', `/v1/sources/${SOURCE}`, { authorization: 'Bearer unknown' }, 401],
      ['the key of a suspended account', `/v1/sources/${SOURCE}`, { authorization: 'Bearer suspended-key' }, 403],
      ['a path that does not exist', '/nothing', {}, 404],
      ['the documentation', '/docs', {}, 200],
    ])('delays the response to a request with %s if there are many, by the address of the client', async (_, url, headers, status) => {
      const passes = jest.spyOn(GuessDelay.prototype, 'pass');
      await http.start();
      expect((await from(`/v1/sources/${SOURCE}`, KEY)).statusCode).toBe(200);
      expect(passes).not.toHaveBeenCalled();
      const delayed = Promise.withResolvers<void>();
      passes.mockReturnValue(delayed.promise);
      const response = from(url, headers);
      const ofAccount = from(`/v1/sources/${SOURCE}`, KEY);
      expect(await Promise.race([response.then(() => 'not delayed'), ofAccount])).toMatchObject({ statusCode: 200 });
      delayed.resolve();
      const { statusCode, rawPayload } = await response;
      expect(statusCode).toBe(status);
      const units = passes.mock.calls.map(([address, cost]) => [address, Math.round(cost! * 1000)]);
      expect(units).toEqual([['192.0.2.1', Math.round((1 + rawPayload.length / BYTES_PER_UNIT) * 1000)]]);
    });

    it('counts the bytes of a file of the documentation', async () => {
      const passes = jest.spyOn(GuessDelay.prototype, 'pass').mockResolvedValue();
      await http.start();
      const { rawPayload } = await from('/docs/swagger-ui-bundle.js');
      await http.app.inject({ method: 'HEAD', url: '/docs/swagger-ui-bundle.js', remoteAddress: '192.0.2.1' });
      expect(passes.mock.calls).toEqual([
        ['192.0.2.1', 1 + rawPayload.length / BYTES_PER_UNIT],
        ['192.0.2.1', 1],
      ]);
    });

    it('does not delay the response if the database cannot say whose key it is', async () => {
      const passes = jest.spyOn(GuessDelay.prototype, 'pass');
      await http.start();
      jest.spyOn(http.app.get(AccountsService), 'authenticate').mockRejectedValue(new Unavailable('the database is down'));
      expect((await from(`/v1/sources/${SOURCE}`, KEY)).statusCode).toBe(503);
      expect(passes).not.toHaveBeenCalled();
    });

    it('does not delay two browsers that load the documentation, and lets them store it', async () => {
      const charge = jest.spyOn(GuessDelay.prototype, 'charge');
      await http.start();
      const headers = { 'accept-encoding': 'gzip, deflate, br' };
      for (let browser = 0; browser < 2; browser++) {
        const { body } = await from('/docs', headers);
        const paths = [...body.matchAll(/(?:src|href)=["']\.(\/docs\/[^"']+)/g)].map(([, path]) => path!);
        expect(paths).toContain('/docs/swagger-ui-bundle.js');
        for (const path of [...paths, '/openapi.json']) {
          const response = await from(path, headers);
          expect(response.statusCode).toBe(200);
          const { etag } = response.headers;
          if (etag !== undefined) expect((await from(path, { ...headers, 'if-none-match': etag })).statusCode).toBe(304);
          expect([path, etag !== undefined]).toEqual([path, !path.endsWith('swagger-ui-init.js')]);
        }
      }
      expect(charge.mock.results.map(({ value }) => value)).toEqual(charge.mock.calls.map(() => 0));
    });
  });

  it('limits its connections, and those that a client does not use', async () => {
    await http.start({ SLUICE_MAX_CONNECTIONS: '10' });
    const { maxConnections, timeout } = http.app.getHttpServer();
    expect({ maxConnections, timeout }).toEqual({ maxConnections: 10, timeout: 30_000 });
  });

  describe('with a limit of two requests a minute', () => {
    beforeEach(() => http.start({ SLUICE_REQUESTS_PER_MINUTE: '2' }));

    it('counts the requests per account, whichever key they have, and refuses the third', async () => {
      const get = (authorization: string) => http.send('GET', `/v1/sources/${SOURCE}`, { headers: { authorization } });
      const own = [await get('Bearer my-key'), await get('Bearer other-key'), await get('Bearer my-key')];
      expect(own.map(({ status }) => status)).toEqual([200, 200, 429]);
      expect(own.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['1', '0', '0']);
      expect(Number(own[2]?.headers['retry-after'])).toBeGreaterThan(0);
      expect((await get('Bearer neighbour-key')).status).toBe(200);
      expect((await get('Bearer unknown')).status).toBe(401);
    });

    it('states both that limit and the one that refuses a request for another reason', async () => {
      http.messages.replyTo(getSource, () => {
        throw new SluiceError('too_many_requests', 'slower');
      });
      const { status, headers } = await http.send('GET', `/v1/sources/${SOURCE}`);
      expect({ status, policy: headers['ratelimit-policy'] }).toEqual({ status: 429, policy: '"default";q=2;w=60, "busy";q=0;w=5' });
      expect(headers.ratelimit).toMatch(/^"default";r=1;t=\d+, "busy";r=0;t=5$/);
    });
  });

  describe('include and exclude', () => {
    beforeEach(() => http.start());

    it.each([
      ['?include=id', ['id']],
      ['?exclude=id,active', ['name']],
      ['?include=id,name&exclude=name', ['id']],
      ['?include=nothing', []],
      ['?include=', ['id', 'name', 'active']],
    ])('%s', async (query, fields) => {
      const { body } = await http.send('GET', `/v1/sources/${SOURCE}${query}`);
      expect(Object.keys(body.data as object)).toEqual(fields);
    });

    it('apply to each item of a list, and do not change page_info', async () => {
      const page_info = { total_count: 1, count: 1, start_cursor: 'a', end_cursor: 'a' };
      http.messages.replyTo(listWebhooks, () => ({ page_info, data: [{ id: 'wh_1', url: 'x' }] }) as never);
      expect((await http.send('GET', '/v1/users/me/webhooks?include=id')).body).toEqual({ page_info, data: [{ id: 'wh_1' }] });
    });

    it('are refused before anything changes if they are malformed', async () => {
      const { status } = await http.send('POST', '/v1/sources', { body: { component_code: 'x', include: { a: 1 } } });
      expect({ status, requests: http.messages.requests }).toEqual({ status: 400, requests: [] });
    });
  });

  describe('the parameters of a webhook', () => {
    beforeEach(async () => {
      http.messages.replyTo(createWebhook, (command) => command as never);
      await http.start();
    });

    it.each([
      ['in the query', '?url=https://a.test&name=n', undefined],
      ['in the body', '', { url: 'https://a.test', name: 'n' }],
      ['in both', '?name=n', { url: 'https://a.test', name: 'body' }],
    ])('are read %s, and the query wins', async (_, query, body) => {
      expect((await http.send('POST', `/v1/webhooks${query}`, { body })).status).toBe(200);
      expect(http.messages.requests[0]?.payload).toMatchObject({ owner_id: ME, url: 'https://a.test', name: 'n' });
    });

    it('have a rate limit of digits in the query, and an integer or null in the body', async () => {
      http.messages.replyTo(updateWebhook, (command) => command as never);
      const body = { url: 'https://a.test' };
      expect(await http.send('POST', '/v1/webhooks?rate_limit=5', { body })).toMatchObject({
        status: 200,
        body: { data: { rate_limit: 5 } },
      });
      for (const text of ['true', '0x10', '1e1', '%205%20', '1.0', '', '0'])
        expect((await http.send('POST', `/v1/webhooks?rate_limit=${text}`, { body })).status).toBe(400);
      const put = (rate_limit: unknown) => http.send('PUT', '/v1/webhooks/wh_000000000000000001', { body: { rate_limit } });
      for (const value of [5, null]) expect(await put(value)).toMatchObject({ status: 200, body: { data: { rate_limit: value } } });
      for (const value of [true, '5', '0x10', ' 5 ', [5], {}, 1.5, 0, 10_001])
        expect(await put(value)).toMatchObject({ status: 400, body: { errors: [{ field: 'rate_limit' }] } });
    });
  });

  describe('a response without content', () => {
    beforeEach(() => http.start());

    it('is 204, and has no body', async () => {
      http.messages.replyTo(deleteSource, () => undefined);
      const { status, body } = await http.send('DELETE', `/v1/sources/${SOURCE}`);
      expect({ status, body }).toEqual({ status: 204, body: undefined });
    });
  });

  describe('a run on demand', () => {
    beforeEach(() => http.start());

    it.each([
      ['with an event', { event: { n: 1 } }, '{"n":1}'],
      ['with null as its event', { event: null }, 'null'],
      ['without an event', {}, undefined],
    ])('is due at once %s', async (_, body, event) => {
      const response = await http.send('POST', `/v1/sources/${SOURCE}/run`, { body });
      expect(response).toMatchObject({ status: 202, body: { data: { id: expect.any(String) } } });
      expect(http.messages.published).toMatchObject([
        { key: ME, payload: { run_id: response.body.data.id, source_id: SOURCE, trigger: 'manual' } },
      ]);
      expect((http.messages.published[0]!.payload as { event?: string }).event).toBe(event);
    });

    it('is refused for an inactive source', async () => {
      http.messages.replyTo(getSource, () => ({ active: false }) as Source);
      expect((await http.send('POST', `/v1/sources/${SOURCE}/run`)).status).toBe(409);
      expect(http.messages.published).toEqual([]);
    });
  });

  describe('a run on demand with daily quotas', () => {
    beforeEach(() => http.start({ SLUICE_QUOTAS: 'free' }));

    it('is published once it is admitted', async () => {
      http.messages.replyTo(admitRun, () => true);
      expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: { event: 1 } })).status).toBe(202);
      const admission = http.messages.requests.find(({ name }) => name === admitRun.name);
      expect(http.messages.published).toMatchObject([{ payload: admission!.payload }]);
    });

    it('is published although the runtime does not respond', async () => {
      http.messages.replyTo(admitRun, () => {
        throw new TimedOut('no reply');
      });
      expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: { event: 1 } })).status).toBe(202);
      expect(http.messages.published).toHaveLength(1);
    });

    it('is refused with 429 over the quota, until the quota is reset at 00:00 UTC', async () => {
      http.messages.replyTo(admitRun, () => false);
      const { status, headers, body } = await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: { event: 1 } });
      expect([status, body.detail, http.messages.published]).toEqual([429, expect.stringContaining('quota'), []]);
      const seconds = Number(headers['retry-after']);
      expect(Math.abs(seconds - secondsToReset(Date.now()))).toBeLessThan(10);
      expect(headers.ratelimit).toContain(`"busy";r=0;t=${seconds}`);
    });
  });
});
