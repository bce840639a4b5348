import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { liveServices, startServiceProcess, untilReady, withLogFile } from './service-process.mjs';

/** @type {import('./service-process.mjs').ServiceProcess} */
let service;
const never = () => new Promise(() => {});

/** @param {string} program @param {'ignore' | 'pipe'} stdio */
const start = (program, stdio = 'ignore') =>
  (service = startServiceProcess({ name: 'test', kind: 'store', command: process.execPath, args: ['-e', program], spawn: { stdio } }));

describe('a service that is being started', () => {
  beforeEach(() => void start('setInterval(() => {}, 1000)'));
  afterEach(() => service.kill());

  test('is ready', async () => {
    expect(await untilReady(service, async () => {}, new AbortController().signal)).toBeNull();
  });

  test('aborts its preparation when it ends', async () => {
    /** @type {AbortSignal | undefined} */
    let abandoned;
    const ready = untilReady(service, (signal) => {
      abandoned = signal;
      return never();
    });
    expect(abandoned?.aborted).toBe(false);
    await service.kill();
    await ready;
    expect(abandoned?.aborted).toBe(true);
  });

  test('ends when the start is stopped, even if it ignores that', async () => {
    await service.kill();
    start('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("ignores it")', 'pipe');
    await once(/** @type {import('node:stream').Readable} */ (service.child.stdout), 'data');
    const stop = new AbortController();
    const ready = untilReady(service, never, stop.signal);
    stop.abort();
    await expect(ready).rejects.toThrow('test was stopped before it was ready');
    expect(await service.exited).toMatchObject({ signal: 'SIGKILL' });
  });

  test('ends when it does not become ready, which is the error', async () => {
    await expect(untilReady(service, () => Promise.reject(new Error('not after 90 s')))).rejects.toThrow('not after 90 s');
    expect(await service.exited).toMatchObject({ signal: 'SIGTERM' });
  });
});

test('a service that ends by itself is not ready', async () => {
  start('process.exit(3)');
  expect(await untilReady(service, never)).toMatchObject({ code: 3 });
});

test('a service whose pid file cannot be written is killed, because nobody would find it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  const args = ['-e', 'setInterval(() => {}, 1000)'];
  const options = { command: process.execPath, args, spawn: {}, pidFile: join(folder, 'not there', 'service.pid') };
  const before = liveServices();
  expect(() => startServiceProcess({ name: 'test', kind: 'store', ...options })).toThrow(/ENOENT/);
  const [unrecorded] = liveServices().filter((each) => !before.includes(each));
  expect(await unrecorded?.exited).toMatchObject({ signal: 'SIGKILL' });
  rmSync(folder, { recursive: true });
});

test('the log of a running service is rotated', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  const file = join(folder, 'service.log');
  const args = ['-e', 'let n = 0; setInterval(() => console.log(`line ${++n}`), 1)'];
  const start = (/** @type {number} */ fd) =>
    startServiceProcess({ name: 'test', kind: 'store', command: process.execPath, args, spawn: { stdio: ['ignore', fd, fd] } });
  service = withLogFile(file, start, { bytes: 1000, everyMs: 50 });
  // it is empty after each rotation
  let newest = '';
  for (; !existsSync(`${file}.1`) || !newest.includes('\n'); newest = readFileSync(file, 'utf8')) await sleep(20);
  await service.kill();
  expect(readFileSync(`${file}.1`, 'utf8')).toMatch(/^line \d+\n/);
  // not at the previous offset, after zeros
  expect(newest).toMatch(/^line \d+\n/);
  expect(statSync(`${file}.1`).mode & 0o777).toBe(0o600);
  rmSync(folder, { recursive: true });
});
