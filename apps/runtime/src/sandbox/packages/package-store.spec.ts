import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PackageStore } from './package-store.js';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'sluice-store-'))));
afterEach(() => rm(folder, { recursive: true, force: true }));

const openStore = () => new PackageStore(folder, 64 * 1024, process.getuid?.() ?? 0);

it('the store of packages is emptied when it is too large and no installation uses it; later ones wait for that', async () => {
  const store = openStore();
  const [one, other] = [await store.open(), await store.open()];
  await store.use(one.work, () => writeFile(join(one.downloads, 'large'), Buffer.alloc(256 * 1024)));
  expect(existsSync(join(other.downloads, 'large'))).toBe(true);
  let isOpen = false;
  const later = store.open().finally(() => (isOpen = true));
  await store.use(other.work, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOpen).toBe(false);
  });
  const { work, downloads } = await later;
  expect(readdirSync(downloads)).toEqual([]);
  await store.use(work, async () => {});
  expect(readdirSync(folder)).toEqual(['downloads']);
});

it('the store of packages is not emptied while another process installs packages, and a killed process does not prevent it', async () => {
  const [own, another] = [openStore(), openStore()];
  const { work: theirs, downloads } = await another.open();
  const fill = async () => {
    const { work } = await own.open();
    await own.use(work, () => writeFile(join(downloads, 'large'), Buffer.alloc(256 * 1024)));
    await own.use((await own.open()).work, async () => {});
    return existsSync(join(downloads, 'large'));
  };
  expect(await fill()).toBe(true);
  const longAgo = new Date(Date.now() - 3600_000);
  await utimes(theirs, longAgo, longAgo);
  expect(await fill()).toBe(false);
});

it('the store of packages can be used after the folder of an installation could not be removed', async () => {
  const store = openStore();
  const { work, downloads } = await store.open();
  await expect(store.use(`${work}\0`, () => writeFile(join(downloads, 'large'), Buffer.alloc(256 * 1024)))).rejects.toThrow('null bytes');
  await rm(work, { recursive: true });
  await store.use((await store.open()).work, async () => {});
  await store.open();
  expect(readdirSync(downloads)).toEqual([]);
});
