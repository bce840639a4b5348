import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPidFile, stopLeftover, writePidFile } from './pid-file.mjs';

describe('a pid file', () => {
  /** @type {string} */
  let folder;
  /** @type {string} */
  let file;
  /** @type {import('node:child_process').ChildProcess} */
  let child;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-pid-file-'));
    file = join(folder, 'pid');
    child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); console.log("up"); setInterval(() => {}, 1000)']);
  });

  afterEach(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  /** @returns {Promise<void>} */
  const up = () => new Promise((resolve) => child.stdout?.once('data', () => resolve()));

  test('finds its process, but not after the process has ended', async () => {
    writePidFile(file, Number(child.pid));
    expect(readPidFile(file)).toMatchObject({ pid: child.pid });
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    expect(readPidFile(file)).toBeNull();
  });

  test('does not mistake another process with the same number for its process', () => {
    writePidFile(file, Number(child.pid));
    const { pid } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ pid, identity: 'another moment' }));
    expect(readPidFile(file)).toBeNull();
  });

  test('finds nothing if the file is missing or damaged, or its process had exited before it was written', () => {
    expect(readPidFile(file)).toBeNull();
    writePidFile(file, 2 ** 30);
    expect(readPidFile(file)).toBeNull();
    writeFileSync(file, '{"pid"');
    expect(readPidFile(file)).toBeNull();
  });

  test('is named if it cannot be written, and leaves no half file', () => {
    mkdirSync(file);
    expect(() => writePidFile(file, process.pid)).toThrow(
      expect.objectContaining({ name: 'ExplainedError', message: expect.stringContaining(`${file} cannot be written: EISDIR`) }),
    );
    expect(readdirSync(folder)).toEqual(['pid']);
  });

  test('leaves the process the time to stop, also if the clock is corrected meanwhile', async () => {
    const stopping = spawn(process.execPath, [
      '-e',
      'process.on("SIGTERM", () => setTimeout(() => process.exit(7), 300)); console.log("up"); setInterval(() => {}, 1000)',
    ]);
    const exited = once(stopping, 'exit');
    await once(stopping.stdout, 'data');
    writePidFile(file, Number(stopping.pid));
    const now = jest.spyOn(Date, 'now').mockImplementationOnce(() => 0);
    await stopLeftover(file);
    now.mockRestore();
    expect((await exited)[0]).toBe(7);
  });

  test('stops the process that was left running, by force if it ignores the signal', async () => {
    await up();
    writePidFile(file, Number(child.pid));
    expect(await stopLeftover(file, { graceMs: 200 })).toBe(true);
    expect(readPidFile(file)).toBeNull();
    expect(existsSync(file)).toBe(false);
    expect(await stopLeftover(file)).toBe(false);
  });
});
