import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifests, readManifests, resolved } from './manifest.js';

const head = 'apiVersion: sluice.dev/v1\n';
const parse = (text: string) => parseManifests(text, 'all.yaml', '/work');
let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-manifests-'))));
afterAll(() => rmSync(folder, { recursive: true }));

describe('parseManifests', () => {
  it('returns one manifest for each document that is not empty, and names subscriptions after their ends', () => {
    const text = `---\n---\n${head}kind: Source\nmetadata: {name: a}\nspec: {component: {key: manual}}\n---\n${head}kind: Subscription\nspec: {emitter: source/a, listener: webhook/b}\n`;
    expect(parse(text).map(({ kind, name, origin }) => [kind, name, origin])).toEqual([
      ['Source', 'a', 'all.yaml, document 2'],
      ['Subscription', 'source/a  webhook/b', 'all.yaml, document 3'],
    ]);
  });

  it.each([
    ['- 1', 'a manifest must be an object'],
    ['apiVersion: v2', 'apiVersion must be sluice.dev/v1'],
    [`${head}kind: Sauce`, 'kind must be one of Component, Webhook, Source, Subscription'],
    [`${head}kind: Source\nspec: {}`, 'metadata.name must be a text of 1 to 100 characters'],
    [`${head}kind: Source\nmetadata: {name: a}\nspec: {prop: {}}`, 'unknown field spec.prop; known are component, name, props, active'],
    [`${head}kind: Source\nmetadata: {name: a}\nspecs: {}`, 'unknown field specs'],
    [
      `${head}kind: Webhook\nmetadata: {name: a}\nspec: {}\n---\n${head}kind: Webhook\nmetadata: {name: a}\nspec: {}`,
      'there is another Webhook a in all.yaml, document 1',
    ],
  ])('refuses %j', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});

describe('readManifests', () => {
  it('reads the files of a folder by name, or standard input', async () => {
    writeFileSync(join(folder, 'b.yml'), `${head}kind: Webhook\nmetadata: {name: b}\nspec: {url: 'http://b'}`);
    writeFileSync(
      join(folder, 'a.json'),
      JSON.stringify({ apiVersion: 'sluice.dev/v1', kind: 'Webhook', metadata: { name: 'a' }, spec: {} }),
    );
    writeFileSync(join(folder, 'notes.txt'), 'not a manifest');
    expect((await readManifests(folder, async () => '')).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(await readManifests('-', async () => `${head}kind: Webhook\nmetadata: {name: c}\nspec: {}`)).toMatchObject([
      { name: 'c', origin: 'standard input, document 1' },
    ]);
    await expect(readManifests(join(folder, 'none'), async () => '')).rejects.toThrow('there is no file or folder');
  });
});

describe('resolved', () => {
  const manifest = () => ({ ...parse(`${head}kind: Source\nmetadata: {name: a}\nspec: {}`)[0]!, folder });

  it('replaces values from the environment and from files, at any depth', () => {
    writeFileSync(join(folder, 'token'), 'from a file\n');
    const value = { a: { valueFrom: { env: 'A' } }, b: [{ c: { valueFrom: { file: 'token' } } }], d: { valueFrom: { env: 'A' }, more: 1 } };
    expect(resolved(value, manifest(), { A: 'from the environment' })).toEqual({
      a: 'from the environment',
      b: [{ c: 'from a file' }],
      d: { valueFrom: { env: 'A' }, more: 1 },
    });
  });

  it.each([
    [{ valueFrom: { env: 'NONE' } }, 'all.yaml, document 1: the environment variable NONE is not set'],
    [{ valueFrom: { file: 'none' } }, 'no such file'],
    [{ valueFrom: {} }, 'valueFrom must have env or file'],
  ])('refuses %j', (value, message) => {
    expect(() => resolved(value, manifest(), {})).toThrow(message);
  });
});
