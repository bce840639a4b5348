import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { curatedModules } from '../curated-modules.js';
import { buildJailRoot, jailRootParent, keepJailRoot, openJailRoot, type JailRoot } from './jail-root.js';

describe('the root of the jail', () => {
  const parent = join(tmpdir(), `sluice-test-${process.getuid?.() ?? ''}`, 'sandbox');
  let root: JailRoot;
  beforeAll(async () => (root = await buildJailRoot(parent, curatedModules)));

  it('is found again at the next start', async () => {
    const before = await stat(root.dir);
    const again = await buildJailRoot(parent, curatedModules);
    expect(again).toEqual(root);
    // not the time of a file: it changes when another process links the same file
    expect((await stat(again.dir)).ino).toBe(before.ino);
  });

  it('is a different one for different packages', async () => {
    const other = await buildJailRoot(parent, ['lodash.get']);
    expect(other.dir).not.toBe(root.dir);
    expect(readdirSync(join(other.dir, 'runner', 'node_modules'))).toEqual(['lodash.get']);
  });

  it('is built once by several concurrent starts', async () => {
    const modules = ['flatted', 'lodash.get'];
    const name = (await buildJailRoot(parent, modules)).dir;
    await rm(join(name, '..'), { recursive: true, force: true });
    const roots = await Promise.all([1, 2, 3].map(() => buildJailRoot(parent, modules)));
    expect(new Set(roots.map(({ dir }) => dir))).toEqual(new Set([name]));
    expect(readdirSync(join(name, 'runner', 'node_modules')).sort()).toEqual(modules);
    expect(readdirSync(parent).filter((entry) => entry.includes('.'))).toEqual([]);
  });

  it('is taken prebuilt, without the data folder', async () => {
    const opened = await openJailRoot(['/nonexistent', parent], '/proc/no-data-folder', curatedModules);
    expect(opened).toEqual(root);
  });

  it('is built in the data folder where no prebuilt one is for the same packages', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    await chmod(dataDir, 0o755);
    const opened = await openJailRoot([join(parent, 'empty')], dataDir, ['lodash.get']);
    expect(opened.dir.startsWith(join(dataDir, 'sandbox'))).toBe(true);
    await rm(dataDir, { recursive: true });
  });

  it('is in a folder of the system, which is not cleaned, if root has a data folder that is closed to other users', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    await chmod(dataDir, 0o700);
    expect(await jailRootParent(dataDir)).toBe(process.getuid?.() === 0 ? '/var/lib/sluice-jail' : join(dataDir, 'sandbox'));
    await rm(dataDir, { recursive: true });
  });

  it('is in a folder that jailed processes can reach, whatever the umask', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    await chmod(dataDir, 0o711);
    const umask = process.umask(0o077);
    try {
      const { dir } = await openJailRoot([], dataDir, ['lodash.get']);
      expect(dir.startsWith(join(dataDir, 'sandbox'))).toBe(true);
      // jailed processes run as this user, unless it is root
      if (process.getuid?.() === 0) expect((await stat(join(dataDir, 'sandbox'))).mode & 0o777).toBe(0o755);
    } finally {
      process.umask(umask);
      await rm(dataDir, { recursive: true });
    }
  });

  it('is removed by the build of another one after a day, unless it is kept', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    const [kept, unused] = [await buildJailRoot(dataDir, ['lodash.get']), await buildJailRoot(dataDir, ['flatted'])];
    const dayAgo = new Date(Date.now() - 25 * 3600 * 1000);
    for (const { dir } of [kept, unused]) await utimes(join(dir, '..'), dayAgo, dayAgo);
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'Date'] });
    const release = keepJailRoot(kept);
    jest.advanceTimersByTime(3600 * 1000);
    release();
    jest.useRealTimers();
    while ((await stat(join(kept.dir, '..'))).mtimeMs <= dayAgo.getTime()) await new Promise((resolve) => setTimeout(resolve, 5));
    await buildJailRoot(dataDir, ['flatted', 'lodash.get']);
    expect([kept, unused].map(({ dir }) => existsSync(dir))).toEqual([true, false]);
    await rm(dataDir, { recursive: true });
  });

  it('explains why it cannot be built, such as a file system that is full or read-only', async () => {
    await expect(buildJailRoot('/sys', ['lodash.get'])).rejects.toThrow(
      expect.objectContaining({
        name: 'NoJailRoot',
        message: expect.stringMatching(/^The root of the jail cannot be built: E\w+: /),
      }),
    );
  });

  it('is not taken prebuilt when others can write to it', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
    await chmod(dataDir, 0o755);
    const prebuilt = await openJailRoot([], dataDir, ['lodash.get']);
    await chmod(join(prebuilt.dir, '..'), 0o777);
    const opened = await openJailRoot([join(dataDir, 'sandbox')], join(dataDir, 'data'), ['lodash.get']);
    expect(opened.dir.startsWith(join(dataDir, 'data', 'sandbox'))).toBe(true);
    await rm(dataDir, { recursive: true });
  });

  it('holds programs, libraries and the runner, and nothing of this machine', () => {
    expect(
      readdirSync(root.dir)
        .filter((name) => !name.startsWith('lib') && name !== 'usr' && name !== 'nix')
        .sort(),
    ).toEqual(['bin', 'dev', 'exchange', 'runner', 'tmp', 'writable']);
    expect(readdirSync(join(root.dir, 'runner')).sort()).toEqual([
      'node_modules',
      'npm',
      'npm.cjs',
      'openssl.cnf',
      'outline.cjs',
      'package.json',
      'probe.cjs',
      'runner.cjs',
    ]);
    expect(readdirSync(join(root.dir, 'runner', 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(
      expect.arrayContaining(['axios', 'lodash', 'moment', 'uuid']),
    );
  });

  it('can be read by every user and written only by its owner', () => {
    const wrong = walk(root.dir).filter((path) => {
      const { mode } = lstatSync(path);
      return (mode & 0o044) !== 0o044 || (mode & 0o022) !== 0;
    });
    expect(wrong).toEqual([]);
  });
});

function walk(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isSymbolicLink()) return [];
    return entry.isDirectory() ? [path, ...walk(path)] : [path];
  });
}
