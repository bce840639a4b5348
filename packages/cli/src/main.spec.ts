import { type ChildProcess, spawn } from 'node:child_process';
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

/** The command line against a server that responds in this way. */
async function sluice(args: string[], respond: Respond, { input = '', node = [] as string[] } = {}): Promise<ChildProcess> {
  server = createServer((incoming, response) => {
    const json = (body: unknown, status = 200): void =>
      void response
        .writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
        .end(JSON.stringify(body));
    respond(`${incoming.method} ${incoming.url!.split('?')[0]}`, json, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const env = {
    SLUICE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    SLUICE_API_KEY: 'slk_1',
    XDG_CONFIG_HOME: folder,
  };
  const child = spawn(process.execPath, [...node, join(folder, 'main.mjs'), ...args], { env });
  child.stdin.end(input);
  return child;
}

/** Reads the first part of the output and closes it, as `| head -1` does. */
async function readOnce(stream: NodeJS.ReadableStream & { destroy?: () => void }): Promise<void> {
  await once(stream, 'data');
  stream.destroy?.();
}

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

  it('a command that would print without end exits', async () => {
    const child = await sluice(['listen', '-s', 'p_1', '--after', '1-0'], (request, json, response) => {
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

it('exits with one sentence on a Node that is too old', async () => {
  const versions = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })";
  const child = await sluice(['whoami'], (_, json) => json({ data: {} }), { node: ['--import', `data:text/javascript,${versions}`] });
  const output = readAll(child.stderr!);
  expect((await once(child, 'exit'))[0]).toBe(1);
  expect(await output).toBe('sluice: Node 22 or newer is required; this is Node 20.19.0\n');
});
