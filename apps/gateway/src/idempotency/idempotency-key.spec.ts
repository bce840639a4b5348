import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Component,
  componentOptions,
  createComponent,
  createReplay,
  createSource,
  getComponent,
  Invalid,
  NotFound,
  SluiceError,
  type Source,
  sourceOptions,
  Unavailable,
} from '#contracts';
import { HttpAppForTests, KEY, SOURCE } from '../http-app-for-tests.js';

const http = new HttpAppForTests();
beforeEach(() => http.reset());
afterEach(() => http.close());

describe('a POST with an Idempotency-Key', () => {
  beforeEach(() => http.start());
  const away = () => {
    throw new Unavailable('away');
  };
  const post = (key: string, body: unknown = { component_code: 'x' }) =>
    http.send('POST', '/v1/sources', { body, headers: { 'idempotency-key': key } });
  const between = { emitter_id: SOURCE, listener_id: 'wh_000000000000000001', from: 1763715600, to: 1763719200 };

  it('is executed once, and its repeat gets the same response', async () => {
    const [first, second] = [await post('a'), await post('a')];
    expect(second.body).toEqual(first.body);
    expect([first, second].map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true']);
    expect(http.messages.requests).toHaveLength(1);
  });

  it('is refused with another payload', async () => {
    await post('a');
    expect((await post('a', { component_code: 'y' })).status).toBe(422);
    expect((await post('b', { component_code: 'y' })).status).toBe(200);
  });

  it('is the same with and without a slash at the end of the path, and as an absolute URL', async () => {
    const to = (url: string) => http.send('POST', url, { body: { component_code: 'x' }, headers: { 'idempotency-key': 'a' } });
    const first = await to('/v1/sources?exclude=name');
    expect((await to('/v1/sources/?exclude=name')).body).toEqual(first.body);
    expect((await to('http://x/v1/sources?exclude=name')).body).toEqual(first.body);
    expect(http.messages.requests).toHaveLength(1);
    for (const other of ['/v1/sources?exclude=name/', '/v1/sources/']) expect((await to(other)).status).toBe(422);
  });

  describe('whose response is too large to be stored', () => {
    const code = 'x'.repeat(64 * 1024);
    const twice = async (url: string, body: unknown) => {
      const send = () => http.send('POST', url, { body, headers: { 'idempotency-key': 'a' } });
      const [first, second] = [await send(), await send()];
      expect(second.body).toEqual(first.body);
      expect(JSON.stringify(first.body).length).toBeGreaterThan(code.length);
      expect([first, second].map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true']);
      return second;
    };

    it('creates one component, and its repeat reads it', async () => {
      http.messages
        .replyTo(createComponent, ({ id }) => ({ id, code }) as Component)
        .replyTo(getComponent, ({ key_or_id }) => ({ id: key_or_id, code }) as Component);
      await twice('/v1/components', { component_code: code });
      expect(http.messages.requests.map(({ name }) => name)).toEqual([createComponent.name, getComponent.name]);
    });

    it('publishes once, and its repeat gets the same emit ids', async () => {
      http.publishing.ids = [{ emit_id: code }];
      expect((await twice(`/v1/sources/${SOURCE}/events`, {})).status).toBe(202);
      expect(http.publishing.acted).toBe(1);
    });

    it('computes the options of a prop again', async () => {
      http.messages.replyTo(sourceOptions, () => ({ options: [code], context: null }));
      await twice(`/v1/sources/${SOURCE}/props/a/options`, {});
      expect(http.messages.requests).toHaveLength(2);
    });

    it('is refused with another payload, and its repeat may fail', async () => {
      http.messages
        .replyTo(createComponent, ({ id }) => ({ id, code }) as Component)
        .replyTo(getComponent, () => {
          throw new Unavailable('away');
        });
      const send = (body: unknown) => http.send('POST', '/v1/components', { body, headers: { 'idempotency-key': 'a' } });
      await send({ component_code: code });
      expect((await send({ component_code: 'y' })).status).toBe(422);
      const repeat = await send({ component_code: code });
      expect({ status: repeat.status, replayed: repeat.headers['idempotency-replayed'] }).toEqual({ status: 503, replayed: undefined });
    });
  });

  it('is refused while the first one is in progress', async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<Source>();
    http.messages.replyTo(createSource, () => gate as never);
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
    http.messages.replyLate(createSource, () => gate.then(ending));
    expect((await post('a')).status).toBe(504);
    expect((await post('a')).status).toBe(409);
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await post('a')).toMatchObject({ status, body, headers: { 'idempotency-replayed': 'true' } });
    expect(http.messages.requests).toHaveLength(1);
  });

  it.each([
    [202, {}],
    [200, { dry_run: true }],
  ])('gets %i for a late reply to a replay, as for one in time: %j', async (status, more) => {
    http.messages.replyLate(createReplay, async () => ({ events: 3 }));
    const replay = () => http.send('POST', '/v1/replays', { body: { ...between, ...more }, headers: { 'idempotency-key': 'a' } });
    expect((await replay()).status).toBe(504);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await replay()).toMatchObject({ status, body: { data: { events: 3 } } });
    expect(http.messages.requests).toHaveLength(1);
  });

  it('gets the status of a success if two replies that it needs are late', async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    http.messages.replyLate(getComponent, () => gate.then(() => ({ code_hash: 'h' }) as Component));
    http.messages.replyLate(componentOptions, async () => ({ options: ['a'], context: null }));
    const options = () => http.send('POST', '/v1/components/x/props/y/options', { body: {}, headers: { 'idempotency-key': 'a' } });
    expect((await options()).status).toBe(504);
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await options()).toMatchObject({ status: 200, body: { data: { options: ['a'] } } });
    expect(http.messages.requests).toHaveLength(2);
  });

  it.each<[string, Error]>([
    ['the work fails', new Unavailable('away')],
    ['the request turns out to be invalid', new Invalid('the component has no name')],
  ])('frees the key when %s after a 504', async (_, error) => {
    http.messages.replyLate(createSource, () => Promise.reject(error));
    expect((await post('a')).status).toBe(504);
    await new Promise((resolve) => setImmediate(resolve));
    expect((await post('a')).status).toBe(504);
    expect(http.messages.requests).toHaveLength(2);
  });

  it.each<[string, number, Error]>([
    ['returns 404 again', 1, new NotFound('component', 'x')],
    ['returns 409 again', 1, new SluiceError('conflict', 'taken')],
    ['is executed again after a 400', 2, new Invalid('the component has no name')],
    ['is executed again after a 429', 2, new SluiceError('too_many_requests', 'slower')],
    ['is executed again after a 503', 2, new Unavailable('away')],
  ])('%s', async (_, times, error) => {
    http.messages.replyTo(createSource, () => {
      throw error;
    });
    const [first, second] = [await post('a'), await post('a')];
    expect(second.status).toBe(first.status);
    expect(http.messages.requests).toHaveLength(times);
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
      await http.send('POST', url, { body, headers: { 'idempotency-key': key } });
      const { payload } = [...http.messages.requests, ...http.messages.published].at(-1) ?? {};
      return [{ ...payload, due_at_ms: 0 }, http.issued.at(-1)];
    };
    http.messages.replyTo(createSource, away).replyTo(createComponent, away);
    http.messages.publish = async ({ name }, payload, key) => {
      http.messages.published.push({ name, payload, key });
      away();
    };
    const first = await made('a');
    expect(await made('a')).toEqual(first);
    expect(await made('b')).not.toEqual(first);
    expect(http.messages.requests.length + http.issued.length).toBeGreaterThanOrEqual(3);
  });

  it('an invalid POST can be corrected under the same key', async () => {
    expect((await post('a', { component_code: 5 })).status).toBe(400);
    expect((await post('a')).status).toBe(200);
    expect((await post('a')).headers['idempotency-replayed']).toBe('true');
  });

  it.each(['', 'a b', 'ä', 'x'.repeat(256)])('is refused with the key %j', async (key) => {
    expect((await post(key)).status).toBe(400);
    expect(http.messages.requests).toEqual([]);
  });

  it('is refused if it has several Idempotency-Key headers', async () => {
    await http.app.listen(0, '127.0.0.1');
    const headers = { ...KEY, 'idempotency-key': ['a', 'b'] };
    const sent = request(`${await http.app.getUrl()}/v1/sources`, { method: 'POST', headers }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(await json(response)).toMatchObject({ status: 400, detail: 'the header Idempotency-Key must be sent once' });
  });

  it('is accepted without effect by methods other than POST', async () => {
    for (let n = 0; n < 2; n++)
      expect((await http.send('GET', `/v1/sources/${SOURCE}`, { headers: { 'idempotency-key': '' } })).status).toBe(200);
  });
});
