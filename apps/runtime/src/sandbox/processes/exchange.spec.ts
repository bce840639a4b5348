import { expect, it } from '@jest/globals';
import { existsSync, mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SandboxUnavailable } from '../sandbox.js';
import { ExchangeBase } from './exchange.js';

it('folders of a killed process are removed, even if it had the same process id, and not those in use', async () => {
  const [left, running] = [process.pid, 1].map((pid) => join(tmpdir(), `sluice-run-${pid}-left`)) as [string, string];
  const first = new ExchangeBase();
  const used = await first.folder();
  for (const folder of [left, running]) mkdirSync(folder, { recursive: true });
  const second = new ExchangeBase();
  expect([left, running, used].map((folder) => existsSync(folder))).toEqual([false, true, true]);
  rmdirSync(running);
  second.close();
  first.close();
  expect(existsSync(used)).toBe(false);
});

it('makes folders after the system has removed their parent', async () => {
  const base = new ExchangeBase();
  rmSync(dirname(await base.folder()), { recursive: true });
  const [first, second] = await Promise.all([base.folder(), base.folder()]);
  expect([first, second].map((folder) => existsSync(folder))).toEqual([true, true]);
  expect(dirname(first)).toBe(dirname(second));
  base.close();
  expect(existsSync(dirname(first))).toBe(false);
});

it('reports that the sandbox is unavailable if a folder cannot be made', async () => {
  const base = new ExchangeBase();
  base.close();
  // where nothing can be created
  base['dir'] = `/proc/${process.pid}`;
  await expect(base.folder()).rejects.toThrow(SandboxUnavailable);
});
