import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PackageStore } from './package-store.js';

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'sluice-store-'))));
afterAll(() => rm(folder, { recursive: true, force: true }));

it('the store of packages is emptied when it is too large and no installation uses it; later ones wait for that', async () => {
  const store = new PackageStore(folder, 64 * 1024, process.getuid?.() ?? 0);
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
