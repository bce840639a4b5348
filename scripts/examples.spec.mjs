import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { inRoot } from './shell/paths.mjs';

const SECRET = 'whsec_c2x1aWNlLWV4YW1wbGUtc2VjcmV0';

/** @param {string} program @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
const start = (program, args, env) =>
  spawn(process.execPath, [inRoot('examples', 'support', program), ...args], { env: { ...process.env, ...env } });

describe('a server of the examples whose port is in use', () => {
  const other = createServer();
  let port = 0;
  beforeAll(async () => {
    await once(other.listen(0, '127.0.0.1'), 'listening');
    port = /** @type {import('node:net').AddressInfo} */ (other.address()).port;
  });
  afterAll(() => void other.close());

  it.each([
    ['receiver.mjs', 'PORT'],
    ['shop.mjs', 'SHOP_PORT'],
  ])('%s prints one line that names %s, and fails', async (program, variable) => {
    const server = start(program, [String(port)]);
    const [output, [code]] = await Promise.all([text(server.stderr), once(server, 'exit')]);
    const advice = `choose another one (export ${variable}=${port + 100}), and run this command again`;
    expect([code, output]).toEqual([1, `port ${port} is in use: ${advice}\n`]);
  });
});

it.each([
  ['accepts an unsigned delivery without a secret, also if the shell has the WEBHOOK_SECRET of a tutorial', [], 204],
  ['refuses an unsigned delivery with a secret', [SECRET], 401],
])('the receiver of the examples %s', async (_, secret, status) => {
  const receiver = start('receiver.mjs', ['0', ...secret], { WEBHOOK_SECRET: SECRET });
  try {
    const [line] = await once(receiver.stdout.setEncoding('utf8'), 'data');
    const response = await fetch(/http:\S+/.exec(line)?.[0] ?? '', { method: 'POST', body: '{}' });
    expect(response.status).toBe(status);
  } finally {
    receiver.kill();
  }
});
