import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { announce, dataFolder, findRunning, localInstance, lockDataFolder, unlockDataFolder } from './data-folder.mjs';

/** @type {import('./data-folder.mjs').DataFolder} */
let folder;
beforeEach(() => void (folder = dataFolder(mkdtempSync(join(tmpdir(), 'sluice-data-')))));
afterEach(() => rmSync(folder.dir, { recursive: true }));

const ADDRESSES = { url: 'http://127.0.0.1:4000', kafka: 'localhost:4092' };
const stopped = () => ({ SLUICE_LOCAL_FOLDER: folder.dir, SLUICE_LOCAL_URL: undefined, SLUICE_LOCAL_KEY_FILE: undefined });

test('the command line gets the URL and the key of the instance that is running on a folder, and neither if none is', async () => {
  expect(localInstance(folder)).toEqual(stopped());
  await lockDataFolder(folder);
  announce(folder, { KAFKA_BROKERS: '127.0.0.1:9092' }, ADDRESSES);
  expect(localInstance(folder)).toEqual({ ...stopped(), SLUICE_LOCAL_URL: 'http://127.0.0.1:4000', SLUICE_LOCAL_KEY_FILE: folder.apiKey });
  expect(findRunning(folder)).toMatchObject({ KAFKA_BROKERS: '127.0.0.1:9092' });
  unlockDataFolder(folder);
  expect(localInstance(folder)).toEqual(stopped());
});

test('the addresses of an instance that was killed are not those of the one that starts', async () => {
  announce(folder, {}, ADDRESSES);
  await lockDataFolder(folder);
  expect(localInstance(folder)).toEqual(stopped());
});
