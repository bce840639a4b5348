import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { inRoot } from '../scripts/shell/paths.mjs';
import { userEnvironment } from './support/document-shell.js';
import { needing } from './support/target.js';

needing('processes').describe('a command of npx sluice', () => {
  /** Accepts requests and does not respond: the command waits. */
  let api: Server;
  beforeAll(async () => {
    api = createServer((socket) => void socket.on('error', () => {}));
    await new Promise<void>((done) => api.listen(0, '127.0.0.1', done));
  });
  afterAll(() => void api.close());

  it.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('ends when only the process of npx gets %s', async (signal, code) => {
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    const env = { ...userEnvironment(), SLUICE_URL: url, SLUICE_API_KEY: 'slk_waits' };
    const asked = once(api, 'connection');
    const command = spawn(process.execPath, [inRoot('scripts', 'sluice.mjs'), 'listen', url, '--source', 'orders'], {
      env,
      stdio: 'ignore',
    });
    await asked;
    command.kill(signal);
    expect(await once(command, 'exit')).toEqual([code, null]);
  });
});
