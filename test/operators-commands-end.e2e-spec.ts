import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { appEnvironment } from '../scripts/processes/apps.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

let system: System;
/** Accepts connections and does not respond, as a broker that is frozen. */
let silent: Server;

beforeAll(async () => {
  system = await startSystem();
  silent = createServer((socket) => void socket.on('error', () => {}));
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  silent?.close();
  await system?.stop();
});

/** Starts an operator's command. */
function start(program: string, args: string[], variables: Record<string, string> = {}) {
  const env = appEnvironment({ DATABASE_URL: process.env.SLUICE_TEST_DATABASE_URL, ...system.kafkaVariables, ...variables });
  const child = spawn(node24(), [inRoot(program), ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, stderr })) };
}

needing('processes').describe('an operator’s command', () => {
  it('ends with an error if Kafka is down or does not respond', async () => {
    const { id } = (await system.account()).account;
    const commands: [program: string, args: string[]][] = [
      ['dist/bundles/gateway-command.js', ['account', 'suspend', id]],
      ['dist/bundles/catalog-command.js', ['registry', 'add', inRoot('components')]],
      ['scripts/dead-letters.mjs', []],
    ];
    const brokers = ['127.0.0.1:9', `127.0.0.1:${(silent.address() as AddressInfo).port}`];
    const ends = await Promise.all(
      brokers.flatMap((KAFKA_BROKERS) => commands.map(([program, args]) => start(program, args, { KAFKA_BROKERS }).ended)),
    );
    for (const end of ends) expect(end).toEqual({ code: 1, stderr: expect.stringMatching(/(^|\n)Kafka does not respond[^\n]*\n$/) });
    const accounts = (await system.sluice('account', 'list')) as { id: string; suspended_at: string | null }[];
    expect(accounts.find((account) => account.id === id)?.suspended_at).toBeNull();
  });
});
