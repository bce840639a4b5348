import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assembler } from '../jail/assembler.js';
import { executable } from '../jail/confine.js';
import { readKernelFile } from '../jail/process-usage.js';
import { defaultLimits } from '../sandbox-config.js';
import type { RunnerEnd } from './runner-end.js';
import { RunnerWatch } from './runner-watch.js';

const call = { pause: 34, clone: 56, exit: 60 };
// linux/sched.h: a thread of the same process, with the same memory, folders, files and handlers of signals
const thread = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;

/** A program that starts a second thread, and ends the first. */
function headless(): Buffer {
  const code = new Assembler();
  code.edi(thread);
  // The same stack, which neither uses
  code.esi(0);
  code.systemCall(call.clone);
  code.compareEax(0);
  code.jumpIfEqual('second');
  code.edi(0);
  code.systemCall(call.exit);
  code.label('second');
  code.systemCall(call.pause);
  return executable(code.bytes());
}

(process.platform === 'linux' && process.arch === 'x64' ? describe : describe.skip)('a process that has ended its main thread', () => {
  let dir: string;
  let child: ChildProcess;
  let ended: Promise<unknown[]>;
  let watch: RunnerWatch;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-headless-'));
    writeFileSync(join(dir, 'headless'), headless(), { mode: 0o755 });
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const start = async () => {
    child = spawn(join(dir, 'headless'));
    ended = once(child, 'exit');
    while (!readKernelFile(`/proc/${child.pid}/stat`)?.includes(') Z ')) await sleep(5);
    watch = new RunnerWatch(
      child.pid!,
      defaultLimits,
      () => {},
      () => {},
    );
  };

  it.each<[string, () => void]>([
    ['a run begins', () => watch.enter('r')],
    ['idle processes are checked', () => void sleep(1100).then(() => watch.checkIdle())],
    ['the memory of all processes is read', () => void watch.rssMb],
  ])('the process is killed when %s, because its memory and files cannot be seen', async (_, look) => {
    await start();
    try {
      look();
      expect(await Promise.race([ended, sleep(3000, ['nothing'], { ref: false })])).toEqual([null, 'SIGKILL']);
    } finally {
      watch.close();
      child.kill('SIGKILL');
    }
  });
});

describe('a process that does not respond', () => {
  it.each([
    ['computes', true, 'for (;;);'],
    ['sleeps or is frozen', false, 'setTimeout(() => {}, 60_000)'],
  ])('is ended if it %s, and its run counts as the cause: %s', async (_, isOfRunningCode, code) => {
    const child = spawn(process.execPath, ['-e', code]);
    const ended = Promise.withResolvers<RunnerEnd>();
    const watch = new RunnerWatch(child.pid!, { ...defaultLimits, silenceCpuMs: 300 }, () => {}, ended.resolve);
    try {
      // it computes while it starts
      await sleep(500);
      watch.enter('r');
      expect(await ended.promise).toMatchObject({ code: 'BLOCKED', isOfRunningCode });
    } finally {
      watch.close();
      child.kill('SIGKILL');
    }
  });
});
