import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Exits with 1 for the first function, and 2 for the second one, which replaces it at the end of a busy stretch. */
const PROGRAM = `
import { onStopCause } from '${join(import.meta.dirname, 'stop-causes.ts')}';
const replace = onStopCause(() => process.exit(1));
setInterval(() => {}, 1000);
process.once('message', (busyMs) => {
  process.send('busy');
  if (busyMs === 0) return;
  for (const until = Date.now() + busyMs; Date.now() < until; );
  replace(() => process.exit(2));
});
`;

let folder: string;
let service: ChildProcess;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-stop-'));
  writeFileSync(join(folder, 'service.mjs'), PROGRAM);
  service = fork(join(folder, 'service.mjs'), { execArgv: ['--disable-warning=ExperimentalWarning'] });
});
afterEach(() => {
  service.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

describe.each(['SIGTERM', 'SIGINT', 'disconnect'] as const)('%s', (cause) => {
  it.each([
    ['calls the first function', 0, 1],
    ['calls the second function if it arrives just before that replaces the first', 500, 2],
  ])('%s', async (_, busyMs, code) => {
    service.send(busyMs);
    await once(service, 'message');
    if (cause === 'disconnect') service.disconnect();
    else service.kill(cause);
    expect(await once(service, 'exit', { signal: AbortSignal.timeout(4000) })).toEqual([code, null]);
  });
});
