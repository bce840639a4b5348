import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PackageStore } from './package-store.js';

const MiB = 1 << 20;

/** Waits until a file or folder is gone. */
async function gone(path: string): Promise<void> {
  while (existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('the store of packages', () => {
  let folder: string;
  let store: PackageStore;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
    store = new PackageStore(folder, MiB, process.getuid!());
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  /** An installation that downloads a file, and ends when `end` resolves. */
  const install = async (name: string, bytes: number, end = Promise.resolve(), onDownloaded = (): void => {}): Promise<string> => {
    const { work, downloads } = await store.open();
    await store.use(work, async () => {
      await writeFile(join(downloads, name), Buffer.alloc(bytes, 1));
      onDownloaded();
      await end;
    });
    return work;
  };

  it('keeps what was downloaded, and removes the folder of the installation', async () => {
    const work = await install('a', MiB / 4);
    await install('b', MiB / 4);
    expect(existsSync(work)).toBe(false);
    expect(await readdir(join(folder, 'downloads'))).toEqual(['a', 'b']);
  });

  it('is emptied after the installation that makes it too large', async () => {
    await install('a', MiB / 2);
    await install('b', MiB);
    for (const name of await readdir(folder)) await gone(join(folder, name));
    await install('c', 10);
    expect(await readdir(join(folder, 'downloads'))).toEqual(['c']);
  });

  it('keeps what another installation is using until that has ended', async () => {
    const other = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const installing = install('a', 10, other.promise, begun.resolve);
    await begun.promise;
    await install('b', 2 * MiB);
    const old = (await readdir(folder)).find((name) => name.startsWith('old-'))!;
    expect(await readdir(join(folder, old))).toEqual(['a', 'b']);
    other.resolve();
    await installing;
    await gone(join(folder, old));
  });

  it('removes what a killed process has left an hour ago', async () => {
    for (const name of ['install-1', 'old-1', 'install-2']) await mkdir(join(folder, name));
    const before = new Date(Date.now() - 2 * 3600_000);
    for (const name of ['install-1', 'old-1']) await utimes(join(folder, name), before, before);
    await install('a', 10);
    expect((await readdir(folder)).sort()).toEqual(['downloads', 'install-2']);
  });
});
