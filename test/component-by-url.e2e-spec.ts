import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { joinSystem, type System } from './support/system.js';
import { listenForTarget, needing } from './support/target.js';

const files: Record<string, string> = {
  '/plain.mjs': "export default { name: 'plain', version: '1', run() { this.$emit('plain'); } }",
  '/sources/main.mjs':
    "import { word } from '../lib/word.mjs'; import app from './app'; export default { name: 'bundled', props: { app }, run() { this.$emit(word + this.app.more()); } }",
  '/sources/app.mjs': "export default { type: 'app', methods: { more: () => '!' } }",
  '/lib/word.mjs': "import { hello } from './hello.js'; export const word = hello;",
  '/lib/hello.js': "export const hello = 'hello';",
  '/lost.mjs': "import './nowhere.mjs'; export default { name: 'lost' }",
};

let system: System;
let api: Api;
let host: Server;
let base: string;
const { it: fetching } = needing('receiver');

beforeAll(async () => {
  host = createServer((request, response) => {
    if (request.url === '/moved.mjs') return void response.writeHead(302, { location: '/plain.mjs' }).end();
    const file = files[request.url ?? ''];
    response.writeHead(file === undefined ? 404 : 200).end(file);
  });
  base = `http://${await listenForTarget(host)}`;
  system = await joinSystem();
  api = await system.account();
});
afterAll(async () => {
  await system?.stop();
  host.closeAllConnections();
  host.close();
  host.closeAllConnections();
});

describe('a component by URL', () => {
  fetching('is the file at the URL', async () => {
    const { body } = await api.post('/components', { component_url: `${base}/plain.mjs` });
    expect(body.data).toMatchObject({ code: files['/plain.mjs'], name: 'plain', version: '1' });
    expect((await api.post('/components', { component_url: `${base}/moved.mjs` })).body.data.code_hash).toBe(body.data.code_hash);
  });

  fetching('is bundled with its relative imports, and runs', async () => {
    const { body } = await api.post('/sources', { component_url: `${base}/sources/main.mjs` });
    expect(body.data).toMatchObject({ name: 'bundled' });
    await api.post(`/sources/${body.data.id}/run`);
    await eventually(async () => {
      const events = await api.get(`/sources/${body.data.id}/event_summaries`);
      expect(events.body.data.map(({ event }: any) => event)).toEqual(['hello!']);
    });
  });

  fetching.each([
    ['/missing.mjs', 'returned status 404'],
    ['/lost.mjs', './nowhere.mjs'],
  ])('is refused if it cannot be fetched: %s', async (path, why) => {
    const { status, body } = await api.post('/components', { component_url: base + path });
    expect(status).toBe(400);
    expect(body.errors[0]).toEqual({ field: 'component_url', message: expect.stringContaining(why) });
  });

  it.each([
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/x.mjs',
    'ftp://example.com/x.mjs',
    'file:///etc/passwd',
    'nonsense',
  ])('is refused at an address that must stay private: %s', async (url) => {
    const { status, body } = await api.post('/components', { component_url: url });
    expect(status).toBe(400);
    expect(body.errors[0].field).toBe('component_url');
  });

  it('is not fetched if the code is given', async () => {
    const { status, body } = await api.post('/components', { component_code: files['/plain.mjs'], component_url: 'nonsense' });
    expect([status, body.data.name]).toEqual([200, 'plain']);
  });
});
