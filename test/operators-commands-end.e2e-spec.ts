import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { appEnvironment } from '../scripts/processes/apps.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { eventually } from './support/eventually.js';
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

needing('processes', 'databases').describe('an operator’s command', () => {
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

  it.each<[string, NodeJS.Signals, number, string]>([
    ['suspend', 'SIGINT', 130, 'stopped'],
    ['delete', 'SIGTERM', 143, 'deleted'],
  ])('excludes other commands for the same account, and can be interrupted and repeated: %s', async (name, signal, code, done) => {
    const api = await system.account();
    const { id } = api.account;
    const yes = name === 'delete' ? ['--yes'] : [];
    await system.apps.pause('catalog');
    try {
      const command = start('dist/bundles/gateway-command.js', ['account', name, id, ...yes]);
      await eventually(async () => expect((await api.get('/users/me')).status).toBe(403));
      await expect(system.sluice('account', 'resume', id)).rejects.toThrow('another command for this account is in progress');
      command.child.kill(signal);
      const unfinished = `the account's keys are refused already, but not everything is ${done}: repeat the command\n`;
      expect(await command.ended).toEqual({ code, stderr: unfinished });
    } finally {
      await system.apps.resume('catalog');
    }
    expect(await system.sluice('account', name, id, ...yes)).toMatchObject({ id });
  });
});
