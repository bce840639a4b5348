import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

let folder: string;
let server: Server;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  await build({
    ...{ absWorkingDir: join(import.meta.dirname, '..'), entryPoints: ['src/main.ts'], outfile: join(folder, 'main.mjs') },
    ...{ bundle: true, platform: 'node', format: 'esm', external: ['esbuild'], logLevel: 'error' },
    conditions: ['sluice-source'],
  });
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

type Respond = (request: string, json: (body: unknown, status?: number) => void, response: ServerResponse) => void;

interface Given {
  input?: string;
  node?: string[];
}

/** The command line against a server that responds in this way. */
async function sluice(args: string[], respond: Respond, { input = '', node = [] }: Given = {}): Promise<ChildProcess> {
  const env = await serve(respond);
  const child = spawn(process.execPath, [...node, join(folder, 'main.mjs'), ...args], { env });
  child.stdin.end(input);
  return child;
}

/** The same on a terminal, with the redirection of a shell. Its standard input is the keyboard, and its standard output the screen. */
async function sluiceOnTerminal(command: string, respond: Respond): Promise<ChildProcess> {
  const env = { ...(await serve(respond)), PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'dumb' };
  return spawn('script', ['-qec', `'${process.execPath}' '${join(folder, 'main.mjs')}' ${command}`, '/dev/null'], { env });
}

/** Starts the server. Returns the variables of the command line. */
async function serve(respond: Respond): Promise<Record<string, string>> {
  server = createServer((incoming, response) => {
    const json = (body: unknown, status = 200): void =>
      void response
        .writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
        .end(JSON.stringify(body));
    respond(`${incoming.method} ${incoming.url!.split('?')[0]}`, json, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    SLUICE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    SLUICE_API_KEY: 'slk_1',
    XDG_CONFIG_HOME: folder,
  };
}

/** Reads the first part of the output and closes it, as `| head -1` does. */
async function readOnce(stream: NodeJS.ReadableStream & { destroy?: () => void }): Promise<void> {
  await once(stream, 'data');
  stream.destroy?.();
}

/** The description of an API that has one operation. */
const API = {
  info: { title: 'Sluice' },
  paths: {
    '/v1/workflows/{id}/sse': { get: { operationId: 'streamWorkflowEvents', parameters: [{ name: 'id', in: 'path', required: true }] } },
  },
};

describe('when the reader of the output has ended', () => {
  const webhook = (name: string): string =>
    `apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: ${name}}\nspec: {url: 'http://in.box/${name}'}`;
  const manifests = ['a', 'b', 'c', 'd'].map(webhook).join('\n---\n');

  it.each([
    ['a command that changes something carries on', 201, 0],
    ['a command that fails later has its own exit code', 400, 1],
  ])('%s', async (_, lastStatus, code) => {
    let created = 0;
    const closed = Promise.withResolvers<void>();
    const child = await sluice(
      ['apply', '-f', '-'],
      (request, json) => {
        if (request !== 'POST /v1/webhooks')
          return json({ page_info: { end_cursor: null }, data: request.endsWith('/me') ? { id: 'u_1' } : [] });
        created++;
        // all but the first find that nobody reads what they print
        void (created === 1 ? Promise.resolve() : closed.promise).then(() =>
          json({ data: { id: `wh_${created}` }, detail: 'refused' }, created === 4 ? lastStatus : 201),
        );
      },
      { input: manifests },
    );
    await readOnce(child.stdout!);
    closed.resolve();
    expect((await once(child, 'exit'))[0]).toBe(code);
    expect(created).toBe(4);
  });

  it.each([
    ['listen', '-s', 'p_1', '--after', '1-0'],
    ['api', 'streamWorkflowEvents', 'id=p_1'],
  ])('a command that would print without end exits: %s', async (...args) => {
    const child = await sluice(args, (request, json, response) => {
      if (request.endsWith('/openapi.json')) return json(API);
      if (!request.endsWith('/sse')) return json({ page_info: { end_cursor: null }, data: [] });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = { event: 1, id: '1-1', indexed_at_ms: 1, metadata: { emitter_id: 'p_1', name: '' } };
      const timer = setInterval(() => response.write(`id: 1-1\ndata: ${JSON.stringify(event)}\n\n`), 20);
      response.on('close', () => clearInterval(timer));
    });
    await readOnce(child.stdout!);
    expect((await once(child, 'exit'))[0]).toBe(0);
  });

  it('a command whose remarks nobody reads carries on', async () => {
    const child = await sluice(['delete', 'webhook', 'inbox'], (request, json, response) => {
      if (request.startsWith('DELETE')) return response.writeHead(204).end();
      json({ page_info: { end_cursor: null }, data: [{ id: 'wh_1', name: 'inbox' }] });
    });
    child.stderr!.destroy();
    expect((await once(child, 'exit'))[0]).toBe(0);
  });
});

it('a command that ends with an error prints all of its output before', async () => {
  // more than a pipe or a socket holds
  const manifests = Array.from(
    { length: 5000 },
    (_, n) => `apiVersion: sluice.dev/v1\nkind: Webhook\nmetadata: {name: ${n}${'-'.repeat(90)}}\nspec: {url: 'http://in.box/'}`,
  );
  const child = await sluice(
    ['diff', '-f', '-', '-o', 'json'],
    (request, json) => json({ page_info: { end_cursor: null }, data: request.endsWith('/me') ? { id: 'u_1' } : [] }),
    { input: manifests.join('\n---\n') },
  );
  const output = readAll(child.stdout!);
  expect((await once(child, 'exit'))[0]).toBe(1);
  expect(JSON.parse(await output)).toHaveLength(5000);
});

it.each(['20.19.0', '22.7.0'])('exits with one sentence on Node %s, which is too old', async (version) => {
  const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const child = await sluice(['whoami'], (_, json) => json({ data: {} }), { node: ['--import', `data:text/javascript,${versions}`] });
  const output = readAll(child.stderr!);
  expect((await once(child, 'exit'))[0]).toBe(1);
  expect(await output).toBe(`sluice: Node 22.8 or newer is required; this is Node ${version}\n`);
});

// some systems have none, and macOS has another one
const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;
(hasScript ? describe : describe.skip)('on a terminal whose standard error goes elsewhere', () => {
  /** Types this when the terminal shows a question. Returns the exit code and what the terminal showed. */
  async function typed(child: ChildProcess, question: string, text: string): Promise<{ code: number; shown: string }> {
    let shown = '';
    child.stdout!.setEncoding('utf8').on('data', (more: string) => {
      const isAsked = shown.includes(question);
      shown += more;
      if (!isAsked && shown.includes(question)) child.stdin!.write(text);
    });
    const [code] = (await once(child, 'close')) as [number];
    return { code, shown };
  }

  it('a command that deletes asks first', async () => {
    const requests: string[] = [];
    const child = await sluiceOnTerminal('delete webhook inbox 2>&1 | cat', (request, json) => {
      requests.push(request);
      json({ page_info: { end_cursor: null }, data: [{ id: 'wh_1', name: 'inbox' }] });
    });
    const { shown } = await typed(child, '[y/N]', 'n\r');
    expect(shown).toContain('cancelled');
    expect(requests).toEqual(['GET /v1/users/me/webhooks']);
  });

  it('login shows its question, and not the key that is typed', async () => {
    const child = await sluiceOnTerminal('login 2>/dev/null', (_, json) => json({ data: { email: 'a@b.c' } }));
    const { code, shown } = await typed(child, 'API key for http://127.0.0.1', 'slk_typed\r');
    expect(shown).not.toContain('slk_typed');
    expect(code).toBe(0);
  });
});
