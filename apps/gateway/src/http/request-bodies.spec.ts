import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { promisify } from 'node:util';
import { createSource, type CreateSource, createWebhook, deleteSource, type Webhook } from '#contracts';
import { BYTES_PER_UNIT } from '#fairness';
import { HttpAppForTests, KEY, ME, SOURCE } from '../http-app-for-tests.js';

const http = new HttpAppForTests();
beforeEach(() => http.reset());
afterEach(() => http.close());

describe('a body', () => {
  beforeEach(() => http.start({ SLUICE_MAX_BODY_BYTES: '2000' }));
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
    ['is not a string', 400, '"null"', {}],
    ['is not broken', 400, '{', {}],
    ['does not nest too deeply', 400, nested(250), {}],
    ['is not text', 415, 'x', { 'content-type': 'text/plain' }],
    ['is not compressed', 415, '{}', { 'content-encoding': 'gzip' }],
    ...['identity', 'Identity', ''].map((coding): [string, number, unknown, object] => [
      `may have the content coding "${coding}"`,
      200,
      { component_code: 'x' },
      { 'content-encoding': coding },
    ]),
    ['is not too large, regardless of its type', 413, 'x'.repeat(2001), { 'content-type': 'text/plain' }],
  ])('%s: %i', async (_, status, body, headers) => {
    const response = await http.send('POST', '/v1/sources', { body, headers });
    expect(response.status).toBe(status);
    expect(http.messages.requests).toHaveLength(status === 200 ? 1 : 0);
  });

  it.each([
    ['in Latin-1', Buffer.from('{"component_code":"\xe9"}', 'latin1')],
    ['in UTF-16', Buffer.from('\uFEFF{"component_code":"x"}', 'utf16le')],
    ['with a truncated character', Buffer.from('{"component_code":"é"}').subarray(0, -3)],
  ])('%s is refused, because it is not UTF-8', async (_, payload) => {
    const headers = { ...KEY, 'content-type': 'application/json' };
    const response = await http.app.inject({ method: 'POST', url: '/v1/sources', headers, payload });
    expect([response.statusCode, response.json().detail]).toEqual([400, 'the body is not UTF-8']);
    expect(http.messages.requests).toEqual([]);
  });

  it.each(['json', ';', 'a/b/c', 'text/json'])('is refused with the types that are possible, if its type is %j', async (type) => {
    const { body } = await http.send('POST', '/v1/sources', { body: '{}', headers: { 'content-type': type } });
    expect(body).toMatchObject({ status: 415, detail: `the body must be application/json, not ${type}` });
  });

  it('is refused with the types that are possible, if its type is missing', async () => {
    const headers = { ...KEY, 'content-type': undefined };
    const response = await http.app.inject({ method: 'POST', url: '/v1/sources', headers, payload: '{}' });
    expect([response.statusCode, response.json().detail]).toEqual([415, 'the header Content-Type is missing; it must be application/json']);
  });

  it('counts as absent when it is empty, regardless of its type', async () => {
    for (const type of ['application/json', 'application/json-seq', 'text/plain'])
      expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: ' ', headers: { 'content-type': type } })).status).toBe(202);
  });

  it.each(['POST', 'DELETE'] as const)('counts as absent when it is empty and its type is empty or malformed: %s', async (method) => {
    http.messages.replyTo(deleteSource, () => ({}));
    const url = method === 'POST' ? `/v1/sources/${SOURCE}/run` : `/v1/sources/${SOURCE}`;
    const statuses = [];
    for (const type of ['', ';', 'json'])
      for (const head of [{ 'content-length': '0' }, { 'transfer-encoding': 'chunked' }, {}])
        statuses.push((await http.send(method, url, { headers: { 'content-type': type, ...head } })).status);
    expect(new Set(statuses)).toEqual(new Set([method === 'POST' ? 202 : 204]));
  });

  it.each(['null', ' null\n', '""'])('counts as absent when it is %j, which axios sends for an empty one', async (body) => {
    http.messages.replyTo(createWebhook, ({ id }) => ({ id }) as Webhook).replyTo(deleteSource, () => ({}));
    expect((await http.send('POST', `/v1/sources/${SOURCE}/run`, { body })).status).toBe(202);
    expect((await http.send('POST', '/v1/webhooks?url=https://a.test', { body })).status).toBe(200);
    expect((await http.send('DELETE', `/v1/sources/${SOURCE}`, { body })).status).toBe(204);
    const { status, body: problem } = await http.send('POST', '/v1/connections', { body });
    expect([status, problem.detail]).toEqual([400, 'app is required; credentials is required']);
  });

  it('is an event where a route accepts events, also when it is null', async () => {
    const published: unknown[][] = [];
    http.publishing.publish = async (...call: unknown[]) => {
      published.push(call);
      return [];
    };
    expect((await http.send('POST', `/v1/sources/${SOURCE}/events`, { body: 'null' })).status).toBe(202);
    expect(published).toEqual([[ME, 'source', SOURCE, expect.objectContaining({ body: Buffer.from('null') })]]);
  });

  it('invalid fields are refused, and each of them is listed', async () => {
    const { status, body } = await http.send('POST', '/v1/sources', { body: { name: 5, configured_props: [] } });
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
    expect((await http.send(method, url, { body })).status).toBe(200);
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
    const response = await http.send('POST', '/v1/sources', { body });
    expect([response.status, response.body.errors]).toEqual([400, [{ field, message: `${field} ${problem}` }]]);
  });

  it('missing fields are refused as required', async () => {
    const { status, body } = await http.send('POST', '/v1/connections', { body: { name: 'x' } });
    expect([status, body.detail]).toEqual([400, 'app is required; credentials is required']);
  });

  it('fields that the route does not know are refused, and each of them is listed', async () => {
    const { status, body } = await http.send('POST', '/v1/sources', { body: { component_codes: 'x', owner_id: 'u_000000000000000002' } });
    expect([status, http.messages.requests]).toEqual([400, []]);
    expect(body.errors).toEqual([
      { field: 'component_codes', message: 'unknown field "component_codes"; did you mean component_code?' },
      { field: 'owner_id', message: expect.stringContaining('unknown field "owner_id"') },
    ]);
  });
});

it('accepts bodies of at most 100 000 values and names, because parsing costs more by them than by bytes', async () => {
  await http.start({ SLUICE_MAX_BODY_BYTES: '2000000' });
  const body = (values: number) => `{"event":[${Array(values).fill('[]').join()}],"text":"${','.repeat(200_000)}"}`;
  const refused = await http.send('POST', `/v1/sources/${SOURCE}/run`, { body: body(60_000) });
  expect(refused).toMatchObject({ status: 400, body: { detail: 'the body has more than 100000 JSON values and names' } });
  expect((await http.send('POST', '/v1/sources', { body: body(30_000) })).body.detail).not.toContain('values and names');
});

describe('a body in chunks', () => {
  beforeEach(async () => {
    await http.start();
    await http.app.listen(0, '127.0.0.1');
  });
  const head = `POST /v1/sources HTTP/1.1\r\nhost: x\r\nauthorization: Bearer my-key\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const chunks = (text: string, size: number) =>
    (text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? []).map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  const sent = async (body: string) => {
    const client = connect((http.app.getHttpServer().address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
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
    expect(http.messages.requests[0]?.payload).toMatchObject({ component_code: 'x' });
    expect(http.turns).toEqual([[ME, 3 + (22 * 128) / BYTES_PER_UNIT]]);
  });

  it('is refused with 413 when there are too many of them', async () => {
    expect(await responseTo(chunks(' '.repeat(65_537), 1))).toMatch(/^HTTP\/1.1 413/);
    expect(http.spent).toEqual([[ME, (65_537 * 128) / BYTES_PER_UNIT]]);
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

  it('is refused with 429 while others wait for a service, also when their clients have disconnected', async () => {
    const replies = Promise.withResolvers<void>();
    http.messages.replyTo(createSource, (async ({ id }: CreateSource) => {
      if (http.messages.requests.length <= 32) await replies.promise;
      return { id };
    }) as never);
    const large = `${chunks('{"component_code":"x"}'.padEnd(2 << 20), 1 << 16)}0\r\n\r\n`;
    const others = await Promise.all(Array.from({ length: 32 }, () => sent(large)));
    while (http.messages.requests.length < 32) await new Promise((resolve) => setImmediate(resolve));
    for (const other of others) other.destroy();
    const connections = promisify((done: (error: Error | null, count: number) => void) => http.app.getHttpServer().getConnections(done));
    while ((await connections()) > 0) await new Promise((resolve) => setImmediate(resolve));
    const one = () => responseTo(`${chunks('{"component_code":"x"}', 30)}0\r\n\r\n`);
    expect(await one()).toMatch(/^HTTP\/1.1 429/);
    replies.resolve();
    let response = await one();
    while (response.startsWith('HTTP/1.1 429')) response = await one();
    expect(response).toMatch(/^HTTP\/1.1 200/);
  });

  it('does not free memory of others when it ends with a large chunk that is one too many', async () => {
    const others = await Promise.all(Array.from({ length: 31 }, () => sent(chunks(' '.repeat(2 << 20), 1 << 16))));
    const refused = chunks(' '.repeat(65_536), 1) + chunks(' '.repeat(1_500_000), 1_500_000);
    expect(await responseTo(refused)).toMatch(/^HTTP\/1.1 413/);
    const connections = promisify((done: (error: Error | null, count: number) => void) => http.app.getHttpServer().getConnections(done));
    while ((await connections()) > others.length) await new Promise((resolve) => setImmediate(resolve));
    others.push(await sent(chunks(' '.repeat(2 << 20), 1 << 16)));
    let response = '';
    // 200 until the others are received
    while (!response.startsWith('HTTP/1.1 429')) response = await responseTo(`${chunks('{"component_code":"x"}', 30)}0\r\n\r\n`);
    for (const other of others) other.destroy();
  });
});
