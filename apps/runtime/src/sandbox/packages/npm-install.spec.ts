import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ComponentRejected } from '../sandbox.js';
import { installedPackages } from './npm-install.js';

let work: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'sluice-test-install-'));
  await mkdir(join(work, 'node_modules'));
});
afterEach(() => rm(work, { recursive: true }));

const writeLockFile = (packages: Record<string, object>) =>
  writeFile(join(work, 'node_modules', '.package-lock.json'), JSON.stringify({ packages }));

it('lists the packages of the lock file', async () => {
  await writeLockFile({ 'node_modules/a/node_modules/@b/c': { version: '1.2.3' } });
  expect(await installedPackages(work)).toEqual([
    { path: 'node_modules/a/node_modules/@b/c', name: '@b/c', version: '1.2.3', hasInstallScript: false },
  ]);
});

it.each([
  ['npm could not write, because it was too large', async () => {}],
  ['is larger than 4 MB', () => writeLockFile({ 'node_modules/a': { version: '1.0.0', funding: 'x'.repeat(5e6) } })],
])('rejects packages whose lock file %s', async (_, write) => {
  await write();
  const rejected = new ComponentRejected('The packages have too much metadata: npm needs more than 4 MB to list them');
  await expect(installedPackages(work)).rejects.toEqual(rejected);
});
