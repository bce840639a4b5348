import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { eventually } from './support/eventually.js';
import { npmStart } from './support/npm-start.js';
import { needing } from './support/target.js';

needing('processes').describe('npm start', () => {
  let dir: string;
  let launcher: ChildProcess;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-start-'));
  });
  afterEach(async () => {
    if (launcher.exitCode === null && launcher.signalCode === null) {
      launcher.kill('SIGTERM');
      await once(launcher, 'exit');
    }
    rmSync(dir, { recursive: true });
  });

  /** Returns the address of the REST API. */
  async function start(): Promise<string> {
    const started = await npmStart({ SLUICE_DATA_DIR: dir });
    launcher = started.launcher;
    return eventually(
      () => {
        // fails at once with what it has printed
        if (launcher.exitCode !== null) return { failed: started.output() };
        return { url: (JSON.parse(readFileSync(join(dir, 'running.json'), 'utf8')) as { SLUICE_LOCAL_URL: string }).SLUICE_LOCAL_URL };
      },
      { withinMs: 90_000 },
    ).then(({ url, failed }) => url ?? Promise.reject(new Error(failed)));
  }

  async function currentUser(url: string): Promise<unknown> {
    const key = readFileSync(join(dir, 'api-key'), 'utf8').trim();
    const response = await fetch(`${url}/v1/users/me`, { headers: { authorization: `Bearer ${key}` } });
    return ((await response.json()) as { data: { id: string } }).data.id;
  }

  it('starts everything in an empty folder, stops at SIGTERM, and continues with its data', async () => {
    const first = await currentUser(await start());
    expect(first).toMatch(/^u_/);
    launcher.kill('SIGTERM');
    expect(await once(launcher, 'exit')).toEqual([0, null]);
    expect(readdirSync(dir).filter((name) => ['lock', 'running.json'].includes(name))).toEqual([]);
    expect(await currentUser(await start())).toBe(first);
  });
});
