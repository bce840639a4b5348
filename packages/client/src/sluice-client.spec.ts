import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SluiceError, UnreachableError } from './errors.js';
import type { EventsOptions } from './live-events.js';
import { SluiceClient, type SluiceOptions } from './sluice-client.js';

interface Request {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** A client as JavaScript sees it. */
type Untyped = Record<string, (options?: unknown) => Promise<unknown>>;

let server: Server;
let sluice: SluiceClient;
let requests: Request[];
/** Called with each request and its number, from 0. */
let respond: (response: ServerResponse, request: Request, n: number) => void;

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type, ...headers }).end(JSON.stringify(body));
};

/** Sends the headers and the first half of a response. */
const half = (response: ServerResponse, next?: () => void): void =>
  void response.writeHead(200, { 'content-type': 'application/json', 'content-length': '10' }).write('{"dat', next);

beforeEach(async () => {
  requests = [];
  server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => (body += text));
    incoming.on('end', () => {
      const request = { method: incoming.method!, url: incoming.url!, headers: incoming.headers, body };
      respond(response, request, requests.push(request) - 1);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  sluice = new SluiceClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, key: 'slk_1' });
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('a client', () => {
  it.each([
    [{ url: '', key: 'slk_1' }, 'SluiceClient needs a url, such as http://localhost:3000'],
    [{ key: 'slk_1' }, 'SluiceClient needs a url, such as http://localhost:3000'],
    [undefined, 'SluiceClient needs a url, such as http://localhost:3000'],
    [{ url: new URL('http://localhost:3000'), key: 'slk_1' }, 'SluiceClient needs a url, such as http://localhost:3000'],
    ...['localhost:3000', '/v1', 'ftp://localhost', 'http://', 'user:secret@localhost'].map((url): [object, string] => [
      { url, key: 'slk_1' },
      'the url must begin with http:// or https://, such as http://localhost:3000',
    ]),
    ...['http://user:secret@localhost', 'http://user@localhost', 'http://localhost?a=secret', 'http://localhost/#a'].map(
      (url): [object, string] => [{ url, key: 'slk_1' }, 'the url cannot contain a user, a password, a query or a fragment'],
    ),
    [{ url: 'http://localhost:3000' }, 'SluiceClient needs a key: is SLUICE_API_KEY set?'],
    [{ url: 'http://localhost:3000', key: undefined }, 'SluiceClient needs a key: is SLUICE_API_KEY set?'],
  ])('throws TypeError if the url or the key is missing or malformed: %j', (options, message) => {
    expect(() => new SluiceClient(options as SluiceOptions)).toThrow(new TypeError(message));
  });

  it.each([
    ...[NaN, -1, null, '3'].map((retries) => [{ retries }, `retries must be a number from 0, not ${retries}`] as const),
    ...[NaN, 0, -1, null, '60'].map((timeoutMs) => [{ timeoutMs }, `timeoutMs must be a number above 0, not ${timeoutMs}`] as const),
  ])('throws TypeError for a limit that is not a number, as that of a variable that is not set: %j', (limits, message) => {
    const options = { url: 'http://localhost:3000', key: 'slk_1', ...limits } as SluiceOptions;
    expect(() => new SluiceClient(options)).toThrow(new TypeError(message));
  });

  it('has methods that a test can replace', async () => {
    const client = new SluiceClient({ url: 'http://localhost:3000', key: 'slk_1' });
    const source = { data: { id: 'dc_1' } };
    Object.assign(client, { getSource: async () => source });
    expect(await client.getSource({ path: { id: 'dc_1' } })).toBe(source);
  });
});

describe('the key', () => {
  const send = (key: SluiceOptions['key']) => new SluiceClient({ url: sluice.url, key }).getCurrentUser();

  it.each(['slk_sec\nret', 'slk sec', 'slk_sécret', '', ' \n'])('is not shown and not sent if it is malformed: %j', async (key) => {
    const error: unknown = await send(async () => key).catch((thrown: unknown) => thrown);
    expect(error).toEqual(new TypeError('the API key is malformed: it must consist of visible ASCII characters'));
    expect(requests).toEqual([]);
  });

  it.each([
    ['undefined', async () => undefined],
    ['object', () => null],
    ['number', 17],
  ])('must be a string, not %s', async (type, key) => {
    await expect(send(key as never)).rejects.toThrow(new TypeError(`the API key must be a string, not ${type}`));
    expect(requests).toEqual([]);
  });

  it('may have a line break at its end, as in a file', async () => {
    respond = (response) => json(response, 200, { data: {} });
    await send('slk_1\n');
    expect(requests).toMatchObject([{ headers: { authorization: 'Bearer slk_1' } }]);
  });
});

describe('a request', () => {
  it('carries the key, and returns the body of the response', async () => {
    respond = (response) => json(response, 200, { data: { id: 'dc_1' } });
    expect(await sluice.getSource({ path: { id: 'dc_1' } })).toEqual({ data: { id: 'dc_1' } });
    expect(requests).toMatchObject([{ method: 'GET', url: '/v1/sources/dc_1', headers: { authorization: 'Bearer slk_1' } }]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['GET /v1/sources/{id} needs path.id', () => sluice.getSource({ id: 'dc_1' } as never)],
    ['GET /v1/sources/{id} needs path.id', () => sluice.getSource({} as never)],
    ['GET /v1/sources/{id} needs path.id', () => sluice.getSource({ path: null } as never)],
    ['GET /v1/sources/{id} needs path.id', () => (sluice as unknown as Untyped).getSource!()],
    ['DELETE /v1/webhooks/{id} needs path.id', () => (sluice as unknown as Untyped).deleteWebhook!(null)],
    ['the id of a source or workflow is required', () => sluice.publish(undefined as never, {})],
    ['the id of a source or workflow is required', async () => sluice.events(undefined as never).next()],
    ['DELETE /v1/webhooks/{id} needs path.id', () => sluice.deleteWebhook({ path: { id: undefined as never } })],
    [
      'GET /v1/sources/{id}/events/{eventId}/deliveries needs path.eventId',
      () => sluice.listSourceEventDeliveries({ path: { id: 'dc_1' } as never }),
    ],
    ['POST /v1/sources/{id}/events needs path.id', () => sluice.publishSourceEvents({ path: {} as never, body: {} })],
    ...[[], ['..'], ['dc_1', 'dc_2'], {}, true].map((id): [string, () => Promise<unknown>] => [
      'GET /v1/sources/{id} needs path.id, a string',
      () => sluice.getSource({ path: { id: id as never } }),
    ]),
    ...['', '.', '..'].map((id): [string, () => Promise<unknown>] => [
      `GET /v1/connections/{id} needs path.id, which cannot be '${id}'`,
      () => sluice.getConnection({ path: { id } }),
    ]),
  ])('is not sent without a parameter of its path, or with one that leads elsewhere: %s', async (message, send) => {
    await expect(send()).rejects.toThrow(new TypeError(message));
    expect(requests).toEqual([]);
  });

  it.each([301, 302, 307, 308])('changes nothing through a redirect with %i, and the error names the other server', async (status) => {
    respond = (response, { url }) =>
      url.startsWith('/v1/')
        ? void response.writeHead(status, { location: 'http://other.test/v1' }).end()
        : json(response, 200, { data: [] });
    await expect(sluice.publish('dc_1', {})).rejects.toThrow(/redirects to http:\/\/other\.test, and nothing was done/);
    expect(requests).toHaveLength(1);
  });

  it('is not sent to another server, which would get it without the key', async () => {
    respond = (response) => void response.writeHead(302, { location: 'http://other.test/v1' }).end();
    await expect(sluice.getCurrentUser()).rejects.toThrow(/redirects to http:\/\/other\.test/);
  });

  it.each(['{"data": ', 'null', '[]', '"text"', '{"name": "another API"}', '{"data": null}'])(
    'throws UnreachableError if the body is %s',
    async (body) => {
      respond = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      await expect(sluice.getCurrentUser()).rejects.toThrow(UnreachableError);
    },
  );

  it('gets an id if it publishes an event with an empty one', async () => {
    respond = (response) => json(response, 202, { data: [] });
    await sluice.publish('dc_1', {}, { id: '' });
    expect(requests[0]!.url).toMatch(/[?&]id=[0-9a-f-]{36}$/);
  });

  it('throws the problem that the API returns, with each bad field, and is not repeated', async () => {
    const problem = { detail: 'the request is malformed', request_id: 'r1', errors: [{ field: 'name', message: 'name must be a string' }] };
    respond = (response) => json(response, 400, problem);
    const error: unknown = await sluice.createSource({ body: {} }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SluiceError);
    expect(error).toMatchObject({ status: 400, message: 'the request is malformed; name must be a string', requestId: 'r1' });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ...['<h1>a teapot</h1>', 'null', '{"errors": {"tea": "pot"}}', '{"errors": [null, "tea", {}, {"message": 17}]}'],
    ...['{"detail": {"tea": "pot"}}'],
  ])('throws the status of a problem that is %s', async (body) => {
    respond = (response) => response.writeHead(418, { 'content-type': 'application/problem+json' }).end(body);
    await expect(sluice.getCurrentUser()).rejects.toMatchObject({ status: 418, message: 'the server returned 418' });
  });

  it('is repeated after the date that the response asks for', async () => {
    const date = new Date(Date.now() + 1500);
    respond = (response, _, n) =>
      n === 0 ? json(response, 503, {}, { 'retry-after': date.toUTCString() }) : json(response, 200, { data: [] });
    await sluice.listSubscriptions();
    expect(Date.now()).toBeGreaterThanOrEqual(Math.floor(date.getTime() / 1000) * 1000);
    expect(requests).toHaveLength(2);
  });

  it.each([
    [503, {}],
    [429, { 'retry-after': '0' }],
    [409, { 'retry-after': '1' }],
  ])('is repeated with the same Idempotency-Key and body after %i', async (status, headers) => {
    respond = (response, _, n) => (n === 0 ? json(response, status, {}, headers) : json(response, 200, { data: { id: 'dc_1' } }));
    expect(await sluice.createSource({ body: { key: 'manual' } })).toEqual({ data: { id: 'dc_1' } });
    expect(requests.map(({ body }) => body)).toEqual(['{"key":"manual"}', '{"key":"manual"}']);
    const [first, second] = requests.map((request) => request.headers['idempotency-key']);
    expect(first).toMatch(/^[\w-]{36}$/);
    expect(second).toBe(first);
  });

  it('is repeated when the connection breaks', async () => {
    respond = (response, _, n) => (n === 0 ? response.destroy() : json(response, 200, { data: [] }));
    expect(await sluice.listSubscriptions()).toEqual({ data: [] });
    expect(requests).toHaveLength(2);
  });

  it.each([
    ...[401, 403, 404, 413, 418, 502, 503].map((status): [number, string] => [status, 'text/html']),
    [404, 'application/json'],
    [200, 'text/html'],
  ])('throws UnreachableError if something else than Sluice returns %i with %s', async (status, type) => {
    respond = (response) => json(response, status, { detail: 'Not Found' }, { 'content-type': type });
    const hasty = new SluiceClient({ url: sluice.url, key: 'slk_1', retries: 0 });
    const error: unknown = await hasty.getCurrentUser().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+ returned ${status}, but not a response of Sluice`));
  });

  it('is repeated when the connection breaks in the middle of the response', async () => {
    respond = (response, _, n) => (n === 0 ? half(response, () => response.destroy()) : json(response, 200, { data: [] }));
    expect(await sluice.listSubscriptions()).toEqual({ data: [] });
    expect(requests).toHaveLength(2);
  });

  it('is not repeated after a 409 that does not say when to retry, and not for longer than the caller waits', async () => {
    respond = (response) => json(response, 409, { detail: 'in use' });
    await expect(sluice.deleteConnection({ path: { id: 'apn_1' } })).rejects.toMatchObject({ status: 409, message: 'in use' });
    respond = (response) => json(response, 429, { detail: 'too many' }, { 'retry-after': '3600' });
    await expect(sluice.getCurrentUser()).rejects.toMatchObject({ status: 429, message: 'too many', retryAfter: '3600' });
    expect(requests).toHaveLength(2);
  });

  it('throws UnreachableError, naming the address, if nobody listens there', async () => {
    await new Promise((resolve) => server.close(resolve));
    const nobody = new SluiceClient({ url: sluice.url, key: 'slk_1', retries: 1 });
    const error: unknown = await nobody.getCurrentUser().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toMatch(/^http:\/\/127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/);
  });

  it('throws UnreachableError, asking for http://, if https:// is given for a server without TLS', async () => {
    const secure = new SluiceClient({ url: sluice.url.replace('http:', 'https:'), key: 'slk_1', retries: 0 });
    const error: unknown = await secure.getCurrentUser().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toMatch(/^https:\/\/127\.0\.0\.1:\d+ cannot be reached: it does not speak TLS; is http:\/\/ meant\?$/);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['has not begun', () => {}],
    ['stalls', (response) => half(response)],
  ])('throws UnreachableError after the time limit if the response %s', async (_, stall) => {
    respond = stall;
    const hasty = new SluiceClient({ url: sluice.url, key: 'slk_1', retries: 0, timeoutMs: 50 });
    const error: unknown = await hasty.getCurrentUser().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toContain('no complete response within 0.05 s');
  });

  it.each([Infinity, 2 ** 31])('has no time limit if timeoutMs is %d', async (timeoutMs) => {
    respond = (response) => void setTimeout(() => json(response, 200, { data: {} }), 20);
    expect(await new SluiceClient({ url: sluice.url, key: 'slk_1', retries: 0, timeoutMs }).getCurrentUser()).toEqual({ data: {} });
  });

  it('throws UnreachableError if each response breaks off', async () => {
    respond = (response) => half(response, () => response.destroy());
    const hasty = new SluiceClient({ url: sluice.url, key: 'slk_1', retries: 0 });
    await expect(hasty.getCurrentUser()).rejects.toBeInstanceOf(UnreachableError);
  });
});

describe('a DELETE', () => {
  const missing = (response: ServerResponse) => json(response, 404, { detail: 'not found' });
  const notFound = { status: 404, message: 'not found' };
  /** The first attempt fails, perhaps after it has taken effect. */
  const afterFailure = (first: (response: ServerResponse) => void, second = missing) => {
    respond = (response, _, n) => (n === 0 ? first(response) : second(response));
  };
  const deleteWebhook = () => sluice.deleteWebhook({ path: { id: 'wh_1' } });

  it.each<[string, (response: ServerResponse) => void]>([
    ['no response', (response) => response.destroy()],
    ['504', (response) => json(response, 504, {})],
  ])('succeeds if it finds nothing, but an attempt before got %s', async (_, first) => {
    respond = (response) => response.writeHead(204).end();
    const inTime = await deleteWebhook();
    requests = [];
    afterFailure(first);
    expect(await deleteWebhook()).toEqual(inTime);
    requests = [];
    expect(await sluice.deleteSubscription({ query: { emitter_id: 'dc_1', listener_id: 'wh_1' } })).toEqual({ data: [] });
    expect(requests).toHaveLength(2);
  });

  it('fails if it finds nothing at the first attempt, after a 429, or a replay to cancel', async () => {
    respond = missing;
    await expect(deleteWebhook()).rejects.toMatchObject(notFound);
    requests = [];
    afterFailure((response) => json(response, 429, {}, { 'retry-after': '0' }));
    await expect(deleteWebhook()).rejects.toMatchObject(notFound);
    requests = [];
    afterFailure((response) => json(response, 504, {}));
    await expect(sluice.cancelReplay({ path: { id: 'rpl_1' } })).rejects.toMatchObject(notFound);
    expect(requests).toHaveLength(2);
  });

  it('succeeds for the key in use if a repetition finds that the key is not valid', async () => {
    const unauthorized = (response: ServerResponse) => json(response, 401, { detail: 'the API key is not valid' });
    const deleteKey = () => sluice.deleteKey({ path: { id: 'key_1' } });
    afterFailure((response) => response.destroy(), unauthorized);
    await deleteKey();
    await expect(deleteKey()).rejects.toMatchObject({ status: 401 });
    requests = [];
    await expect(deleteWebhook()).rejects.toMatchObject({ status: 401 });
  });

  describe('of events', () => {
    const id = 'dc_1';
    const ok = (response: ServerResponse) => json(response, 202, { data: {} });

    it.each([{}, { start_id: '1-0', end_id: '' }])(
      'is not repeated without an end, because it would also delete later events: %j',
      async (query) => {
        const send = () => sluice.deleteSourceEvents({ path: { id }, query });
        afterFailure((response) => json(response, 504, {}), ok);
        await expect(send()).rejects.toMatchObject({ status: 504 });
        expect(requests).toHaveLength(1);
        requests = [];
        afterFailure((response) => response.destroy(), ok);
        await expect(send()).rejects.toBeInstanceOf(UnreachableError);
        expect(requests).toHaveLength(1);
      },
    );

    it('is repeated with an end, and after a 429', async () => {
      afterFailure((response) => response.destroy(), ok);
      await sluice.deleteSourceEvents({ path: { id }, query: { end_id: '1-0' } });
      afterFailure((response) => json(response, 429, {}, { 'retry-after': '0' }), ok);
      requests = [];
      await sluice.deleteSourceEvents({ path: { id } });
      expect(requests).toHaveLength(2);
    });
  });

  it('fails if the 404 is not from Sluice', async () => {
    afterFailure(
      (response) => json(response, 503, {}),
      (response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>no backend</h1>'),
    );
    await expect(deleteWebhook()).rejects.toBeInstanceOf(UnreachableError);
  });
});

describe('each', () => {
  const itemsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `dc_${n}` }));
  /** A list with this many items. */
  const list =
    (total_count: number): typeof respond =>
    (response, { url }) => {
      const { searchParams } = new URL(url, sluice.url);
      const begin = Number(searchParams.get('after') ?? -1) + 1;
      const data = itemsOf(total_count).slice(begin, begin + Number(searchParams.get('limit')));
      const end_cursor = data.length === 0 ? null : String(begin + data.length - 1);
      json(response, 200, { page_info: { total_count, count: data.length, end_cursor }, data });
    };

  it('returns the items of all pages of a list', async () => {
    const items = itemsOf(250);
    respond = list(250);
    const got: unknown[] = [];
    for await (const source of sluice.each((query) => sluice.listSources({ query }))) got.push(source);
    expect(got).toEqual(items);
    expect(requests.map(({ url }) => url)).toEqual([
      '/v1/users/me/sources?limit=100',
      '/v1/users/me/sources?limit=100&after=99',
      '/v1/users/me/sources?limit=100&after=199',
      '/v1/users/me/sources?limit=100&after=249',
    ]);
  });

  it('returns all items if the caller sets another limit', async () => {
    respond = list(50);
    const got: unknown[] = [];
    for await (const source of sluice.each((query) => sluice.listSources({ query: { ...query, limit: 20 } }))) got.push(source);
    expect(got).toHaveLength(50);
  });

  it('throws TypeError if the function does not pass its argument on, and would return the first page without end', async () => {
    respond = list(250);
    const read = async () => {
      const got: unknown[] = [];
      for await (const source of sluice.each(() => sluice.listSources({ query: { limit: 2 } }))) got.push(source);
    };
    await expect(read()).rejects.toThrow(new TypeError('the function of each() must pass its argument on, as the query of the list'));
    expect(requests).toHaveLength(2);
  });

  it('requests no other page after one that has all items', async () => {
    respond = list(99);
    const got: unknown[] = [];
    for await (const source of sluice.each((query) => sluice.listSources({ query }))) got.push(source);
    expect([got.length, requests.length]).toEqual([99, 1]);
  });
});

describe('publish', () => {
  it.each([[{ order: 17 }], ['text'], [17], [null], [false], [[1, 2]]])('sends %j as it is, with an emit id', async (event) => {
    respond = (response, { url }) => json(response, 202, { data: [{ emit_id: new URL(url, sluice.url).searchParams.get('id') }] });
    const id = await sluice.publish('dc_1', event, { eventName: 'orders' });
    expect(requests).toHaveLength(1);
    expect(requests[0]!.url).toBe(`/v1/sources/dc_1/events?event_name=orders&id=${id}`);
    expect(JSON.parse(requests[0]!.body)).toEqual(event);
    expect(requests[0]!.headers).toMatchObject({ 'content-type': 'application/json' });
    // the emit id makes it repeatable
    expect(requests[0]!.headers['idempotency-key']).toBeUndefined();
  });

  it('throws TypeError for a bigint, which is not JSON, and sends a large number that is written as one', async () => {
    await expect(sluice.publish('dc_1', { order: 12345678901234567890n })).rejects.toThrow(TypeError);
    expect(requests).toEqual([]);
    respond = (response) => json(response, 202, { data: [] });
    await sluice.publish('dc_1', { order: (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON('12345678901234567890') });
    expect(requests[0]!.body).toBe('{"order":12345678901234567890}');
  });
});

describe('events', () => {
  const summary = (n: number) => ({ id: `1-${n}`, event: n });
  const frame = (n: number): string => `id: 1-${n}\ndata: ${JSON.stringify(summary(n))}\n\n`;

  it('continues after the last event whenever the stream ends, and reports each state', async () => {
    respond = (response, { url, headers }) => {
      if (!url.includes('/sse')) return json(response, 200, { page_info: {}, data: [{ id: '1-0' }] });
      const last = Number(String(headers['last-event-id']).split('-')[1]);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: hello\n\n${frame(last + 1)}`);
      // cut off in the middle of the next event
      response.write(frame(last + 2).slice(0, 10), () => response.destroy());
    };
    const states: boolean[] = [];
    const got: unknown[] = [];
    for await (const { event } of sluice.events('dc_1', { onState: ({ connected }) => states.push(connected) })) {
      got.push(event);
      if (got.length === 3) break;
    }
    expect(got).toEqual([1, 2, 3]);
    expect(states).toEqual([true, false, true, false, true]);
    expect(requests.filter(({ url }) => url.includes('/sse')).map(({ headers }) => headers['last-event-id'])).toEqual([
      '1-0',
      '1-1',
      '1-2',
    ]);
  });

  it('does not count a response without a stream as a connection', async () => {
    respond = (response, _, n) =>
      n === 0
        ? json(response, 200, { data: [] })
        : void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`: hello\n\n${frame(8)}`);
    const states: unknown[] = [];
    await sluice.events('dc_1', { after: '1-7', onState: (state) => states.push(state) }).next();
    expect(states).toEqual([
      { connected: false, reason: expect.stringContaining('returned 200, but not a response of Sluice') },
      { connected: true },
    ]);
  });

  it('starts after the given event, reports that events may be missing, and ends with the signal', async () => {
    const end = new AbortController();
    respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: only the last 100 events are kept: there may have been more\n\n${frame(8)}`);
    };
    let gaps = 0;
    const got: unknown[] = [];
    for await (const { event } of sluice.events('p_1', { after: '1-7', eventName: '*', signal: end.signal, onGap: () => gaps++ })) {
      got.push(event);
      end.abort();
    }
    expect({ got, gaps }).toEqual({ got: [8], gaps: 1 });
    expect(requests).toMatchObject([{ url: '/v1/workflows/p_1/sse?event_name=*&expand=event', headers: { 'last-event-id': '1-7' } }]);
  });

  it('ends with the signal also while the server does not respond to the request for the newest event', async () => {
    const end = new AbortController();
    respond = () => end.abort();
    expect(await sluice.events('dc_1', { signal: end.signal }).next()).toEqual({ done: true, value: undefined });
    expect(requests).toMatchObject([{ url: '/v1/sources/dc_1/event_summaries?limit=1' }]);
  });

  describe('while none arrives', () => {
    const silent = (): Promise<void> =>
      new Promise((resolve) => {
        respond = (response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n');
          response.once('close', resolve);
        };
      });
    const begun = async () => {
      const connected = Promise.withResolvers<void>();
      const events = sluice.events('dc_1', { after: '1-7', onState: () => connected.resolve() });
      const next = events.next();
      await connected.promise;
      return { events, next };
    };

    it('end with return(), which closes the connection', async () => {
      const closed = silent();
      const { events, next } = await begun();
      expect(await events.return(undefined)).toEqual({ done: true, value: undefined });
      expect(await next).toEqual({ done: true, value: undefined });
      await closed;
    });

    it('end with throw(), which throws its argument', async () => {
      const closed = silent();
      const { events, next } = await begun();
      await expect(events.throw(new Error('of the caller'))).rejects.toThrow('of the caller');
      expect(await next).toEqual({ done: true, value: undefined });
      await closed;
    });

    it('end with the Readable that reads them', async () => {
      const closed = silent();
      const connected = Promise.withResolvers<void>();
      const readable = Readable.from(sluice.events('dc_1', { after: '1-7', onState: () => connected.resolve() })).resume();
      await connected.promise;
      readable.destroy();
      await Promise.all([closed, once(readable, 'close')]);
    });
  });

  it('are read in a browser whose streams cannot be iterated', async () => {
    respond = (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`: hello\n\n${frame(8)}`);
    const end = new AbortController();
    const onState = ({ connected }: { connected: boolean }) => connected || end.abort();
    const iterate = ReadableStream.prototype[Symbol.asyncIterator];
    Object.assign(ReadableStream.prototype, { [Symbol.asyncIterator]: undefined });
    try {
      expect((await sluice.events('dc_1', { after: '1-7', signal: end.signal, onState }).next()).value).toEqual(summary(8));
    } finally {
      Object.assign(ReadableStream.prototype, { [Symbol.asyncIterator]: iterate });
    }
  });

  it('parses events with the given function', async () => {
    respond = (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`: hello\n\n${frame(8)}`);
    const parse = (text: string): unknown => ({ text });
    expect((await sluice.events('dc_1', { after: '1-7', parse }).next()).value).toEqual({ text: JSON.stringify(summary(8)) });
  });

  const own = new Error('an error of the caller');
  const fail = (): never => {
    throw own;
  };

  it.each<[string, EventsOptions]>([
    ['parse', { parse: fail }],
    ['onState', { onState: fail }],
    ['onGap', { onGap: fail }],
  ])('throws an error of %s, and does not connect again', async (_, options) => {
    respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: only the last 100 events are kept: there may have been more\n\n${frame(8)}`);
    };
    const states: unknown[] = [];
    const onState = (state: unknown) => states.push(state);
    await expect(sluice.events('dc_1', { after: '1-7', onState, ...options }).next()).rejects.toBe(own);
    expect(requests).toHaveLength(1);
    expect(states.slice(1)).toEqual([]);
  });

  it('throws an error of the function that returns the key', async () => {
    const client = new SluiceClient({ url: sluice.url, key: fail });
    await expect(client.events('dc_1').next()).rejects.toBe(own);
    await expect(client.events('dc_1', { after: '1-7' }).next()).rejects.toBe(own);
    expect(requests).toEqual([]);
  });

  it('throws an error of onState that the end of a connection causes', async () => {
    respond = (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': hello\n\n');
    const onState = ({ connected }: { connected: boolean }) => (connected ? undefined : fail());
    await expect(sluice.events('dc_1', { after: '1-7', onState }).next()).rejects.toBe(own);
  });

  it('throws if the stream is refused', async () => {
    respond = (response) => json(response, 404, { detail: 'no such source' });
    await expect(sluice.events('dc_1').next()).rejects.toMatchObject({ status: 404 });
  });
});
