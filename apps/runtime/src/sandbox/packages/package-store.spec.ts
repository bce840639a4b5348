import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PackageStore } from './package-store.js';

const MiB = 1 << 20;
const HOUR_MS = 3600_000;

describe('the store of packages', () => {
  let folder: string;
  let store: PackageStore;

  const openStore = () => new PackageStore(folder, MiB, process.getuid!());
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
    store = openStore();
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
  const downloaded = () => readdir(join(folder, 'downloads'));
  const leaveLongAgo = async (...paths: string[]) => {
    const before = new Date(Date.now() - 2 * HOUR_MS);
    for (const path of paths) await utimes(path, before, before);
  };

  it('keeps what was downloaded, and removes the folder of the installation', async () => {
    const work = await install('a', MiB / 4);
    await install('b', MiB / 4);
    expect(existsSync(work)).toBe(false);
    expect(await downloaded()).toEqual(['a', 'b']);
  });

  it('is emptied after the installation that makes it too large', async () => {
    await install('a', MiB / 2);
    await install('b', MiB);
    await install('c', 10);
    expect(await downloaded()).toEqual(['c']);
    expect(await readdir(folder)).toEqual(['downloads']);
  });

  it('keeps what another installation is using until that has ended; later ones wait for that', async () => {
    const other = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const installing = install('a', 10, other.promise, begun.resolve);
    await begun.promise;
    await install('b', 2 * MiB);
    let isLaterDone = false;
    const later = install('c', 10).then(() => (isLaterDone = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect([await downloaded(), isLaterDone]).toEqual([['a', 'b'], false]);
    other.resolve();
    await Promise.all([installing, later]);
    expect(await downloaded()).toEqual(['c']);
  });

  it('is not emptied while another process installs packages, and a killed process does not prevent it', async () => {
    const { work: theirs } = await openStore().open();
    await install('a', 2 * MiB);
    await install('b', 10);
    // waits until the store has decided
    const { work } = await store.open();
    expect(await downloaded()).toEqual(['a', 'b']);
    await leaveLongAgo(theirs);
    await store.use(work, async () => {});
    await install('c', 10);
    expect(await downloaded()).toEqual(['c']);
  });

  it('can be used after the folder of an installation could not be removed', async () => {
    const { work, downloads } = await store.open();
    await expect(store.use(`${work}\0`, () => writeFile(join(downloads, 'a'), Buffer.alloc(2 * MiB, 1)))).rejects.toThrow('null bytes');
    await rm(work, { recursive: true });
    await install('b', 10);
    await install('c', 10);
    expect(await downloaded()).toEqual(['c']);
  });

  it('removes what a killed process has left an hour ago', async () => {
    for (const name of ['install-1', 'old-1', 'install-2']) await mkdir(join(folder, name));
    await leaveLongAgo(join(folder, 'install-1'), join(folder, 'old-1'));
    await install('a', 10);
    expect((await readdir(folder)).sort()).toEqual(['downloads', 'install-2']);
  });
});
