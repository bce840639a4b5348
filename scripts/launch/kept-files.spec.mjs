import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { newSecretsKey } from '../shell/secrets-key.mjs';
import { dataFolder } from './data-folder.mjs';
import { checkKeptFiles } from './kept-files.mjs';

/** @type {import('./data-folder.mjs').DataFolder} */
let folder;
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), 'sluice-kept-')));
  for (const part of ['postgres/data', 'broker/data']) mkdirSync(join(folder.dir, part), { recursive: true });
});
afterEach(() => rmSync(folder.dir, { recursive: true }));

/** @param {Record<string, string>} files those of an installation that has been started before, and changes of them */
function keep(files = {}) {
  const all = {
    'api-key': 'slk_1\n',
    'secrets-key': `${newSecretsKey()}\n`,
    'postgres/password': 'secret\n',
    'postgres/data/PG_VERSION': '18\n',
    'broker/data/meta.properties': 'version=1\n',
  };
  mkdirSync(join(folder.dir, 'broker', 'data', 'events-0'), { recursive: true });
  for (const [name, text] of Object.entries({ ...all, ...files })) writeFileSync(join(folder.dir, name), text);
}

/** @param {Record<string, string>} [env] @param {{ databaseUrl?: string, kafkaBrokers?: string }} [settings] */
const problem = (env = {}, settings = {}) =>
  checkKeptFiles(folder, settings, env).then(
    () => 'none',
    (error) => /** @type {Error} */ (error).message,
  );

test('a folder that is new, or complete, has no problem', async () => {
  expect(await problem()).toBe('none');
  keep();
  expect(await problem()).toBe('none');
  keep({ 'secrets-key': `${newSecretsKey()},${newSecretsKey()}` });
  expect(await problem()).toBe('none');
});

test('a broker that was not prepared completely has no problem: it has no partitions yet', async () => {
  writeFileSync(join(folder.broker, 'data', 'bootstrap.checkpoint'), '');
  expect(await problem()).toBe('none');
});

test.each([
  ['postgres/password', 'is missing'],
  ['secrets-key', 'is missing'],
  ['postgres/data/PG_VERSION', 'is missing, although'],
  ['broker/data/meta.properties', 'is missing, although'],
])('names a file that is missing: %s', async (name, words) => {
  keep({ 'postgres/data/base': '' });
  rmSync(join(folder.dir, name));
  expect(await problem()).toMatch(
    new RegExp(`^${join(folder.dir, name)} ${words}.*restore .* from a backup.*or move ${folder.dir} away .*\\.$`),
  );
});

test.each([
  ['postgres/password', '\n', 'is empty'],
  ['secrets-key', '', 'is empty'],
  ['secrets-key', newSecretsKey().slice(0, 20), 'does not contain a key'],
])('names a file that cannot be used: %s with %j', async (name, text, words) => {
  keep({ [name]: text });
  expect(await problem()).toMatch(`${join(folder.dir, name)} ${words}.`);
});

test('does not look at files that are not used', async () => {
  keep({ 'secrets-key': '', 'postgres/password': '' });
  rmSync(join(folder.dir, 'broker', 'data', 'meta.properties'));
  const external = { databaseUrl: 'postgres://db', kafkaBrokers: 'kafka:9092' };
  expect(await problem({ SLUICE_SECRETS_KEY_FILE: '/run/secrets/key' }, external)).toBe('none');
});
