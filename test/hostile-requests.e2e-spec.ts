import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, get, type Server } from 'node:http';
import { connect } from 'node:net';
import { type Api, type ApiResponse, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { joinSystem, type System } from './support/system.js';
import { listenForTarget, needing } from './support/target.js';

let system: System;
let hostile: Api;
let victim: Api;
let host: Server;
let base: string;
const stuck: (() => void)[] = [];

beforeAll(async () => {
  host = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://x');
    if (pathname.startsWith('/slow')) return void stuck.push(() => response.destroy());
    if (pathname === '/metadata') return void response.writeHead(302, { location: 'http://169.254.169.254/latest/' }).end();
    if (pathname === '/file') return void response.writeHead(302, { location: 'file:///etc/passwd' }).end();
    response.end(pathname === '/blank' ? `import${' '.repeat(500_000)}` : "import './slow-neighbour.mjs'; export default { name: 'x' }");
  });
  base = `http://${await listenForTarget(host)}`;
  system = await joinSystem();
  [hostile, victim] = [await system.account(), await system.account()];
});
afterAll(async () => {
  for (const end of stuck) end();
  await system?.stop();
  host.close();
  host.closeAllConnections();
});

/** The other account creates a source from code that nobody has created before. */
async function victimSeconds(): Promise<number> {
  const begin = performance.now();
  await victim.source(`export default { name: 'victim ${Math.random()}' }`);
  return (performance.now() - begin) / 1000;
}

describe('a URL that leads inside', () => {
  it.each([
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://169.254.43518/',
    'http://[::ffff:169.254.169.254]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/',
    'http://10.0.0.1:80/',
    'http://user@192.168.0.1/',
  ])('is not accepted for a webhook: %s', async (url) => {
    expect((await hostile.post(`/webhooks?url=${encodeURIComponent(url)}`)).status).toBe(400);
  });

  it.each([
    'file:///etc/passwd',
    'data:text/javascript,export default {}',
    'ftp://example.com/x.mjs',
    'http://169.254.169.254/latest/user-data',
    'http://[::ffff:a9fe:a9fe]/',
    'http://10.0.0.1/x.mjs',
    'javascript:alert(1)',
    '//example.com/x.mjs',
    'http://example.com:22/x.mjs',
    '\\0',
  ])('is not read as a component: %s', async (component_url) => {
    const { status, body } = await hostile.post('/components', { component_url });
    expect({ status, field: body.errors?.[0]?.field ?? 'component_url' }).toEqual({ status: 400, field: 'component_url' });
  });

  needing('receiver').it.each(['/metadata', '/file'])('is not followed from %s', async (path) => {
    const { status, text } = await hostile.post('/components', { component_url: `${base}${path}` });
    expect(status).toBe(400);
    expect(text).not.toContain('root:');
  });

  it.each([
    'git+ssh://git@example.com/x.git',
    'file:../x',
    'http://example.com/x.tgz',
    'npm:lodash@4',
    '../../etc/passwd',
    'a/../../b',
    'x@file:.',
  ])('is not imported as a package: %s', async (specifier) => {
    const response = await hostile.post('/components', {
      component_code: `import ${JSON.stringify(specifier)}; export default { name: 'x' }`,
    });
    expect(response.status).toBe(400);
  });
});

describe('an account that keeps a service busy', () => {
  const settle = (all: Promise<ApiResponse>[]) => Promise.all(all.map((each) => each.then(({ status }) => status)));

  needing('receiver').it('code at a slow URL does not delay others', async () => {
    const creations = Array.from({ length: 80 }, (_, n) => hostile.post('/components', { component_url: `${base}/slow-${n}.mjs` }));
    await Promise.race(creations);
    expect(await victimSeconds()).toBeLessThan(15);
    const statuses = await settle(creations);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(80 - 2 * 4);
  });

  needing('receiver').it('text that takes long to search does not delay others', async () => {
    const creations = Array.from({ length: 4 }, () => hostile.post('/components', { component_url: `${base}/blank` }));
    expect(await victimSeconds()).toBeLessThan(15);
    expect(await settle(creations)).toEqual([400, 400, 400, 400]);
  });

  it('options() that never return do not delay others', async () => {
    const code = "export default { name: 'never', props: { a: { type: 'string', optional: true, options: () => new Promise(() => {}) } } }";
    const { id } = await hostile.source(code);
    const calls = Array.from({ length: 80 }, () => hostile.post(`/sources/${id}/props/a/options`, {}));
    await Promise.race(calls);
    expect(await victimSeconds()).toBeLessThan(15);
    expect((await settle(calls)).filter((status) => status === 429).length).toBeGreaterThanOrEqual(80 - 2 * 8);
  });

  it('requests for endpoints that do not exist do not delay others', async () => {
    const guesses = Array.from({ length: 500 }, (_, n) =>
      http('POST', `${system.endpointsUrl}/${`guess${n}`.padEnd(24, 'x')}`, { body: 'x' }).then(({ status }) => status),
    );
    expect(await victimSeconds()).toBeLessThan(15);
    for (const status of await Promise.all(guesses)) expect([404, 429]).toContain(status);
  });
});

describe('pages of events that are expensive to read', () => {
  const COUNT = 16;
  /** Reads a response without looking at it; resolves with its size. */
  const sizeOf = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      get(`${hostile.baseUrl}${path}`, { headers: { authorization: `Bearer ${hostile.account.api_key}` } }, (response) => {
        let bytes = 0;
        response.on('data', (chunk: Buffer) => (bytes += chunk.length));
        response.on('end', () => resolve(bytes));
        response.on('error', reject);
      }).on('error', reject);
    });

  it('do not delay the requests of another account', async () => {
    const { id } = await hostile.source("export default { name: 'large' }");
    const event = `[${'[],'.repeat(330_000)}0]`;
    for (let n = 0; n < COUNT; n++) await hostile.raw('POST', `/sources/${id}/events`, event, { 'content-type': 'application/json' });
    await eventually(
      async () => expect((await hostile.get(`/sources/${id}/event_summaries?limit=1`)).body.page_info.total_count).toBe(COUNT),
      { withinMs: 60_000 },
    );
    const paths = ['events?limit=100', 'event_summaries?limit=100&expand=event&include=event', 'event_summaries?limit=100&expand=event'];
    let pending = true;
    const pages = Promise.all(paths.flatMap((path) => [sizeOf(`/sources/${id}/${path}`), sizeOf(`/sources/${id}/${path}`)]));
    void pages.finally(() => (pending = false));
    let slowest = 0;
    for (; pending; await new Promise((resolve) => setTimeout(resolve, 20))) {
      const begin = performance.now();
      expect((await victim.get('/users/me')).status).toBe(200);
      slowest = Math.max(slowest, performance.now() - begin);
    }
    for (const bytes of await pages) expect(bytes).toBeGreaterThan(COUNT * event.length);
    expect(slowest).toBeLessThan(4000);
  });
});

describe('a malformed request', () => {
  /** Sends bytes to the REST API; resolves with what comes back until the connection is closed. */
  const raw = (text: string): Promise<string> =>
    new Promise((resolve) => {
      const { hostname, port } = new URL(system.apiUrl);
      let response = '';
      const socket = connect(Number(port), hostname, () => socket.write(text));
      socket.setTimeout(2000, () => socket.destroy());
      socket.on('data', (chunk) => (response += chunk.toString('latin1')));
      socket.on('error', () => {});
      socket.on('close', () => resolve(response));
    });
  const head = () => `host: x\r\nauthorization: Bearer ${hostile.account.api_key}\r\n`;
  const statuses = (response: string) => [...response.matchAll(/^HTTP\/1.1 (\d+)/gm)].map(([, status]) => Number(status));

  it.each<[string, string]>([
    ['two lengths', 'content-length: 2\r\ncontent-length: 60\r\n'],
    ['a length and chunks', 'content-length: 4\r\ntransfer-encoding: chunked\r\n'],
    ['an unknown transfer coding', 'transfer-encoding: xchunked\r\n'],
    ['a blank before the colon', 'content-length : 2\r\n'],
    ['a folded header', 'x: a\r\n content-length: 2\r\n'],
    ['a bare line feed', 'x: a\ncontent-length: 2\r\n'],
  ])('a request with %s does not smuggle another one', async (_, headers) => {
    const smuggled = `GET /v1/users/me HTTP/1.1\r\n${head()}\r\n`;
    const response = await raw(`POST /v1/keys HTTP/1.1\r\n${head()}${headers}\r\n{}0\r\n\r\n${smuggled}`);
    expect(statuses(response)).not.toContain(200);
    expect(response).not.toContain(hostile.account.api_key);
  });

  it('headers of 100 KB are refused', async () => {
    expect(statuses(await raw(`GET /v1/users/me HTTP/1.1\r\n${head()}x: ${'y'.repeat(100_000)}\r\n\r\n`))).toEqual([431]);
  });

  it('cannot put lines into headers or logs', async () => {
    const name = 'a\r\nset-cookie: b=c\r\n\u001b[2J{"level":"fatal"}';
    const { headers, body } = await hostile.post('/webhooks', { url: 'https://example.com/', name, description: name });
    expect(headers['set-cookie']).toBeUndefined();
    expect(body.data).toMatchObject({ name, description: name });
    expect((await hostile.send('GET', '/users/me', undefined, { 'x-request-id': 'a"b' })).headers['x-request-id']).not.toBe('a"b');
  });
});

describe('a body that is expensive to read', () => {
  const post = (path: string, text: string) => hostile.raw('POST', path, text, { 'content-type': 'application/json' });
  it.each<[string, string]>([
    ['lists in lists', `{"name":${'['.repeat(900_000)}${']'.repeat(900_000)}}`],
    ['a million empty lists', `{"name":[${'[],'.repeat(600_000)}0]}`],
    ['a million fields', `{${Array.from({ length: 150_000 }, (_, n) => `"f${n}":0`).join()}}`],
    ['a million names to include', `{"include":"${'a,'.repeat(900_000)}"}`],
    ['a number of a million digits', `{"name":${'9'.repeat(1_900_000)}}`],
    ['__proto__', '{"__proto__":{"name":"x","admin":true},"constructor":{"prototype":{"polluted":1}}}'],
  ])('a body of %s is refused or harmless', async (_, text) => {
    const response = await post('/keys', text);
    expect([200, 400]).toContain(response.status);
    expect((await victim.get('/users/me')).status).toBe(200);
  });

  it.each(['name', 'component_id', 'external_id'])('a %s of a megabyte is refused', async (field) => {
    const random = Array.from({ length: 100_000 }, () => Math.random().toString(36).slice(2))
      .join('')
      .slice(0, 1 << 20);
    const response = await hostile.post('/sources', { component_code: "export default { name: 'x' }", [field]: random });
    expect([400, 404]).toContain(response.status);
  });

  it('code with a name of a hundred thousand characters is refused', async () => {
    const random = Array.from({ length: 10_000 }, () => Math.random().toString(36).slice(2))
      .join('')
      .slice(0, 60_000);
    for (const field of ['name', 'key', 'version'])
      expect((await hostile.post('/sources', { component_code: `export default { name: 'x', ${field}: '${random}' }` })).status).toBe(400);
  });
});
