import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { componentOf, startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { PlayedSource } from './played-source-for-tests.js';

/** What the polled server returns. */
interface Response {
  body: string | Buffer;
  type?: string;
  status?: number;
}

describe('the pollers of the registry', () => {
  let response: Response;
  let received: IncomingHttpHeaders;
  let server: Server;
  let url: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    server = createServer((request, reply) => {
      received = request.headers;
      reply.writeHead(response.status ?? 200, { 'content-type': response.type ?? '' }).end(response.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    url = `http://${address}/feed`;
    sandbox = await startTestSandbox({ allowPrivateHosts: address });
  }, 120_000);
  afterAll(async () => {
    await sandbox.close();
    server.close();
  });

  const sourceOf = async (key: string, props: Record<string, unknown> = {}): Promise<PlayedSource> => {
    const code = readFileSync(join(process.cwd(), 'components', `${key}.mjs`), 'utf8');
    const description = await sandbox.inspect(componentOf(code));
    expect(description).toMatchObject({ key, has_run: true, dedupe: 'unique' });
    return new PlayedSource(sandbox, code, description, { url, ...props });
  };
  /** The ids that a poll of this response emits. */
  const poll = async (source: PlayedSource, body: Response['body'] | object, type?: string): Promise<string[]> => {
    response = { body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body), type };
    return (await source.tick()).emits.map(({ id }) => id!);
  };
  const events = async (source: PlayedSource, body: Response['body'] | object, type?: string): Promise<any[]> => {
    response = { body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body), type };
    return (await source.tick()).emits.map(({ event }) => JSON.parse(event) as unknown);
  };

  const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);
  const feed = (items: string[]): string => `<rss version="2.0"><channel><title>Feed</title>${items.join('')}</channel></rss>`;
  /** Newest first, like most feeds. */
  const dated = (ids: number[]): string =>
    feed(
      ids
        .map((id) => `<item><guid>${id}</guid><title>Item ${id}</title><pubDate>${new Date(id * 1000).toUTCString()}</pubDate></item>`)
        .reverse(),
    );
  const undated = (ids: number[]): string => feed(ids.map((id) => `<item><guid>${id}</guid></item>`).reverse());
  const list = (ids: number[]): object => ids.map((id) => ({ id }));

  describe.each<[string, string, (ids: number[]) => string | object]>([
    ['rss-feed', 'with dates', dated],
    ['rss-feed', 'without dates', undated],
    ['json-poller', 'as a list', list],
  ])('%s, for items %s', (key, _, body) => {
    const emits = async (source: PlayedSource, ids: number[]): Promise<number[]> => (await poll(source, body(ids))).map(Number);

    it('emits each of 150 items once, also if some are new or come back', async () => {
      const source = await sourceOf(key);
      expect(await emits(source, numbers(0, 150))).toEqual(numbers(0, 150));
      expect(await emits(source, numbers(0, 150))).toEqual([]);
      expect(await emits(source, numbers(20, 160))).toEqual(numbers(150, 160));
      expect(await emits(source, [])).toEqual([]);
      expect(await emits(source, numbers(0, 160))).toEqual([]);
    });

    it('emits the first 1000 items of a longer list, and the others with the next polls', async () => {
      const source = await sourceOf(key);
      expect(await emits(source, numbers(0, 2100))).toEqual(numbers(0, 1000));
      expect(await emits(source, numbers(0, 2101))).toEqual(numbers(1000, 2000));
      expect(await emits(source, numbers(0, 2101))).toEqual(numbers(2000, 2101));
      expect(await emits(source, numbers(0, 2101))).toEqual([]);
    });
  });

  it('emit the others with the next polls if a run may emit fewer', async () => {
    const small = await startTestSandbox({ allowPrivateHosts: new URL(url).host, limits: { emits: 2 } });
    try {
      const code = readFileSync(join(process.cwd(), 'components', 'json-poller.mjs'), 'utf8');
      const source = new PlayedSource(small, code, await small.inspect(componentOf(code)), { url });
      const polls = [];
      for (let each = 0; each < 4; each++) polls.push(await poll(source, list(numbers(0, 5))));
      expect(polls).toEqual([['0', '1'], ['2', '3'], ['4'], []]);
    } finally {
      await small.close();
    }
  });

  it.each<[string, string | object, (ids: number[]) => unknown]>([
    ['rss-feed', feed([1, 2].map((id) => `<item><guid>${id}</guid><title>${id === 1 ? 'x'.repeat(2 ** 20) : ''}</title></item>`)), Number],
    ['json-poller', [{ id: 1, text: 'x'.repeat(2 ** 20) }, { id: 2 }], Number],
  ])('%s skips an item that is too large', async (key, body) => {
    const source = await sourceOf(key);
    expect(await poll(source, body)).toEqual(['2']);
    expect(await poll(source, body)).toEqual([]);
  });

  describe('rss-feed', () => {
    it.each<[string, string[], (string | RegExp)[]]>([
      ['guid', ['<guid isPermaLink="false">1</guid><link>http://a</link>', '<guid>2</guid>'], ['2', '1']],
      [
        'link if the guid is empty',
        ['<guid></guid><link>http://a</link>', '<guid isPermaLink="false"/><link>http://b</link>'],
        ['http://b', 'http://a'],
      ],
      [
        'content if there is nothing else',
        ['<guid> </guid><link></link><title>A</title>', '<title>B</title>'],
        [/^[\w-]{43}$/, /^[\w-]{43}$/],
      ],
    ])('identifies an item by its %s', async (_, items, ids) => {
      const source = await sourceOf('rss-feed');
      const body = feed(items.map((item) => `<item>${item}</item>`));
      const emitted = await poll(source, body);
      expect(emitted).toEqual(ids.map((id) => (id instanceof RegExp ? expect.stringMatching(id) : id)));
      expect(new Set(emitted).size).toBe(2);
      expect(await poll(source, body)).toEqual([]);
    });

    const xml = (encoding: string, text = 'Käse'): string =>
      `<?xml version="1.0" encoding="${encoding}"?>${feed([`<item><guid>1</guid><title>${text}</title></item>`])}`;
    it.each<[string, Buffer, string]>([
      ['UTF-8', Buffer.from(xml('UTF-8')), 'application/rss+xml'],
      ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${xml('UTF-8')}`), 'application/rss+xml; charset=utf-8'],
      ['UTF-8 that is declared as UTF-16', Buffer.from(xml('utf-16')), 'text/xml'],
      ['UTF-8 in the response, which the declaration contradicts', Buffer.from(xml('ISO-8859-1')), 'text/xml; charset="utf-8"'],
      ['an unknown encoding', Buffer.from(xml('x-unknown')), 'text/xml; charset=x-unknown'],
      ['ISO-8859-1 in the declaration', Buffer.from(xml('ISO-8859-1'), 'latin1'), 'application/rss+xml'],
      ['ISO-8859-1 in the response', Buffer.from(xml('UTF-8'), 'latin1'), 'text/xml; charset=ISO-8859-1'],
      ['windows-1252', Buffer.from(xml('windows-1252', 'K\xe4se \x96'), 'latin1'), 'text/xml'],
      ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${xml('UTF-16')}`, 'utf16le'), 'text/xml'],
      ['big-endian UTF-16', Buffer.from(`\ufeff${xml('UTF-16')}`, 'utf16le').swap16(), 'text/xml'],
    ])('decodes %s', async (name, body, type) => {
      const title = name === 'windows-1252' ? 'Käse –' : 'Käse';
      expect(await events(await sourceOf('rss-feed'), body, type)).toEqual([expect.objectContaining({ title })]);
    });

    it('emits the entries of an Atom feed beside one with a bad date or a bare link', async () => {
      const entries = [
        '<id>1</id><published>yesterday</published><updated>yesterday</updated>',
        '<id>2</id><link>http://a</link>',
        '<id>3</id><link rel="alternate" href="http://b"/><updated>2024-01-02T00:00:00Z</updated>',
      ];
      const body = `<feed xmlns="http://www.w3.org/2005/Atom">${entries.map((entry) => `<entry>${entry}</entry>`).join('')}</feed>`;
      expect(await events(await sourceOf('rss-feed'), body)).toEqual([
        expect.objectContaining({ id: '2', link: 'http://a' }),
        expect.objectContaining({ id: '1' }),
        expect.objectContaining({ id: '3', link: 'http://b', isoDate: '2024-01-02T00:00:00.000Z' }),
      ]);
    });

    it('sends the login of the URL, and reports an error of the server without it', async () => {
      const source = await sourceOf('rss-feed', { url: url.replace('//', '//reader:p%40ss@') });
      expect(await poll(source, dated([1]))).toEqual(['1']);
      expect(received.authorization).toBe(`Basic ${Buffer.from('reader:p@ss').toString('base64')}`);
      response = { body: '', status: 503 };
      await expect(source.tick()).rejects.toThrow(`Error: ${url} returned 503`);
    });
  });

  describe('json-poller', () => {
    it('emits a response that is not a list each time it has changed', async () => {
      const source = await sourceOf('json-poller');
      const [open, paid] = [
        { id: 5, status: 'open' },
        { id: 5, status: 'paid' },
      ];
      expect(await events(source, open)).toEqual([open]);
      expect(await events(source, open)).toEqual([]);
      expect(await events(source, paid)).toEqual([paid]);
      expect(await events(source, open)).toEqual([open]);
    });

    it('fails if there is nothing at itemsPath, and emits nothing if there is null', async () => {
      const source = await sourceOf('json-poller', { itemsPath: 'data.items' });
      await expect(poll(source, { items: [] })).rejects.toThrow('returned nothing at itemsPath, "data.items"');
      expect(await poll(source, { data: { items: null } })).toEqual([]);
      expect(await poll(source, { data: { items: [{ id: 1 }] } })).toEqual(['1']);
    });

    it('emits an integer with more digits than a number can have as text', async () => {
      const source = await sourceOf('json-poller');
      const body =
        '[{"id":10765432100123456789},{"id":10765432100123456788,"n":[-9007199254740993,0.12345678901234567891,1e20,"12345678901234567890 \\"1"]}]';
      expect(await events(source, body)).toEqual([
        { id: '10765432100123456789' },
        { id: '10765432100123456788', n: ['-9007199254740993', 0.12345678901234568, 1e20, '12345678901234567890 "1'] },
      ]);
    });

    it('identifies items with an empty or missing id by their content', async () => {
      const source = await sourceOf('json-poller');
      const items = [{ id: '', a: 1 }, { id: '', a: 2 }, { a: 3 }, { id: null }, null, 'text'];
      expect(await events(source, [...items, { id: '', a: 1 }])).toEqual(items);
      expect(await events(source, items)).toEqual([]);
    });

    it('emits an item whose id is too long for an id of an event', async () => {
      const source = await sourceOf('json-poller');
      const items = [{ id: `${'x'.repeat(5000)}1` }, { id: `${'x'.repeat(5000)}2` }];
      expect(await events(source, items)).toEqual(items);
      expect(await events(source, items)).toEqual([]);
    });
  });
});
