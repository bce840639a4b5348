import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asYaml } from '../session/output.js';
import { parseManifests, readManifests, resolved, unreadManifests } from './manifest.js';

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
    [`${head}kind: Source\nmetadata: {name: a, set: b}\nspec: {}`, 'unknown field metadata.set; known are name'],
    [
      `${head}kind: Source\nmetadata: {name: a}\nspec: {component: {kee: manual}}`,
      'unknown field spec.component.kee; known are file, code, url, key, id, name',
    ],
    [
      `${head}kind: Source\nmetadata: {name: a}\nspec: {component: {key: manual, file: a.mjs}}`,
      'key and file exclude each other: a component has one of them',
    ],
    [`${head}kind: Component\nmetadata: {name: a}\nspec: {code: '', file: a.mjs}`, 'code and file exclude each other'],
    [`${head}kind: Subscription\nspec: {auto: true, emitter: source/a, listener: b}`, 'spec.auto and spec.emitter exclude each other'],
    [`${head}kind: Source\nmetadata: {name: a}\nspec: {props: &props {self: *props}}`, 'all.yaml: an alias must not contain itself'],
    ...['.inf', '-.Inf', '.nan'].map((number) => [
      `${head}kind: Source\nmetadata: {name: a}\nspec: {props: {n: [${number}]}}`,
      'all.yaml: infinities and .nan are not numbers in JSON',
    ]),
    ...['no', 'off', '"false"', '1', 'null', '[]'].flatMap((value) => [
      [`${head}kind: Source\nmetadata: {name: a}\nspec: {active: ${value}}`, 'spec.active must be true or false'],
      [`${head}kind: Webhook\nmetadata: {name: a}\nspec: {active: ${value}}`, 'spec.active must be true or false'],
      [`${head}kind: Subscription\nspec: {auto: ${value}}`, 'spec.auto must be true or false'],
    ]),
    [`${head}kind: Webhook\nmetadata: {name: a}\nspec: {rate_limit: fast}`, 'spec.rate_limit must be an integer from 1 to 10000, or null'],
    [`${head}kind: Webhook\nmetadata: {name: a}\nspec: {name: 17}`, 'spec.name must be a text, or null'],
    [`${head}kind: Source\nmetadata: {name: 17}\nspec: {}`, 'metadata.name must be a text'],
    [`${head}kind: Source\nmetadata: {name: a}\nspec: {props: [1]}`, 'spec.props must be an object, or null'],
    [`${head}kind: Source\nmetadata: {name: a}\nspec: {component: manual}`, 'spec.component must be an object'],
    [`${head}kind: Source\nmetadata: {name: a}\nspec: {component: {file: 5}}`, 'spec.component.file must be a text'],
    [`${head}kind: Component\nmetadata: {name: a}\nspec: {file: 5}`, 'spec.file must be a text'],
    [`${head}kind: Subscription\nspec: {emitter: a, listener: b, event_name: 5}`, 'spec.event_name must be a text'],
    [`${head}kind: Source\nmetadata: {name: ${'a'.repeat(101)}}\nspec: {}`, 'metadata.name must be a text of 1 to 100 characters'],
    [
      `${head}kind: Webhook\nmetadata: {name: a}\nspec: {}\n---\n${head}kind: Webhook\nmetadata: {name: a}\nspec: {}`,
      'there is another Webhook a in all.yaml, document 1',
    ],
  ])('refuses %j', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});

it('refuses a few aliases that stand for millions of values', () => {
  const lines = [...'bcdefghi'].map((name, n) => `    ${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[n]}`).join()}]`);
  const text = `${head}kind: Source\nmetadata: {name: a}\nspec:\n  props:\n    a: &a [x, x, x, x, x, x, x, x, x]\n${lines.join('\n')}`;
  expect(() => parse(text)).toThrow('all.yaml: the aliases of a document stand for more than 1 MiB');
});

it('accepts an alias that is used often', () => {
  const text = `${head}kind: Source\nmetadata: {name: a}\nspec: {props: {a: &a ${'x'.repeat(1000)}, b: [${Array(1000).fill('*a').join()}]}}`;
  expect((parse(text)[0]!.spec.props as { b: string[] }).b).toHaveLength(1000);
});

it('merge keys are merged, and a prop may have their name in quotes', () => {
  const [common, key] = ['common: &common {a: 1, b: 1}', `'<<': 3`];
  const text = `${head}kind: Source\nmetadata: {name: a}\nspec: {props: {${common}, more: {<<: *common, b: 2, ${key}}}}`;
  expect(parse(text)[0]!.spec.props).toEqual({ common: { a: 1, b: 1 }, more: { a: 1, b: 2, '<<': 3 } });
  const [{ spec }] = parse(
    asYaml({ apiVersion: 'sluice.dev/v1', kind: 'Source', metadata: { name: 'a' }, spec: { props: { '<<': 1 } } }),
  ) as [any];
  expect(spec).toEqual({ props: { '<<': 1 } });
});

it('a subscription without a name may have long ends', () => {
  const ends = [`source/${'a'.repeat(100)}`, `webhook/${'b'.repeat(100)}`];
  expect(parse(`${head}kind: Subscription\nspec: {emitter: ${ends[0]}, listener: ${ends[1]}}`)[0]!.name).toBe(ends.join('  '));
});

it('a value from elsewhere is checked when it is read', () => {
  expect(parse(`${head}kind: Webhook\nmetadata: {name: a}\nspec: {url: {valueFrom: {env: URL}}, active: true}`)).toHaveLength(1);
});

describe('readManifests', () => {
  it('reads the files of a folder by name, or standard input', async () => {
    writeFileSync(join(folder, 'b.yml'), `${head}kind: Webhook\nmetadata: {name: b}\nspec: {url: 'http://b'}`);
    writeFileSync(
      join(folder, 'a.json'),
      JSON.stringify({ apiVersion: 'sluice.dev/v1', kind: 'Webhook', metadata: { name: 'a' }, spec: {} }),
    );
    writeFileSync(join(folder, 'notes.txt'), 'not a manifest');
    symlinkSync('user@host.17', join(folder, '.#b.yml'));
    expect((await readManifests(folder, async () => '')).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(await readManifests('-', async () => `${head}kind: Webhook\nmetadata: {name: c}\nspec: {}`)).toMatchObject([
      { name: 'c', origin: 'standard input, document 1' },
    ]);
    await expect(readManifests(join(folder, 'none'), async () => '')).rejects.toThrow('there is no file or folder');
  });

  it('reads the files of a folder whose endings are in capitals', async () => {
    const set = mkdtempSync(join(folder, 'capitals-'));
    writeFileSync(join(set, 'A.YAML'), `${head}kind: Webhook\nmetadata: {name: a}\nspec: {}`);
    expect(await readManifests(set, async () => '')).toMatchObject([{ name: 'a' }]);
  });

  it('refuses input without manifests, with which --prune would delete the whole set', async () => {
    const empty = mkdtempSync(join(folder, 'empty-'));
    mkdirSync(join(empty, 'folder.yaml'));
    writeFileSync(join(empty, 'a.yaml'), '\ufeff# nothing\n---\n');
    for (const text of ['', '---\n', '# nothing'])
      await expect(readManifests('-', async () => text)).rejects.toMatchObject({
        code: 2,
        message: 'standard input contains no manifests',
      });
    await expect(readManifests(empty, async () => '')).rejects.toMatchObject({ code: 2, message: `${empty} contains no manifests` });
  });

  it.each<[string, string, (path: string) => void]>([
    [
      'a link to nothing',
      'cannot be read: ENOENT: no such file or directory',
      (path) => symlinkSync(join(folder, 'not-mounted.yaml'), path),
    ],
    ['an empty file', 'is empty', (path) => writeFileSync(path, '\ufeff \n')],
  ])('refuses a folder that contains %s, because --prune would delete its resources', async (_, message, make) => {
    const set = mkdtempSync(join(folder, 'set-'));
    writeFileSync(join(set, 'a.yaml'), `${head}kind: Webhook\nmetadata: {name: a}\nspec: {}`);
    make(join(set, 'b.yaml'));
    await expect(readManifests(set, async () => '')).rejects.toMatchObject({ code: 2, message: `${join(set, 'b.yaml')} ${message}` });
  });
});

it('unreadManifests returns the manifests in subfolders, and no other files', () => {
  const set = mkdtempSync(join(folder, 'nested-'));
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(set, file)), { recursive: true });
    writeFileSync(join(set, file), text);
  };
  const manifest = `${head}kind: Webhook\nmetadata: {name: a}\nspec: {}`;
  for (const file of ['a.yaml', 'team/eu/b.YML', 'node_modules/x/c.yaml', '.git/d.yaml']) write(file, manifest);
  write('components/tsconfig.json', '{}');
  write('components/binary.json', '\xff');
  symlinkSync(set, join(set, 'loop'));
  expect(unreadManifests(set)).toEqual([join(set, 'team', 'eu', 'b.YML')]);
  expect([unreadManifests(join(set, 'a.yaml')), unreadManifests('-')]).toEqual([[], []]);
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

  it('parses JSON from the environment and from files', () => {
    writeFileSync(join(folder, 'key.json'), '{"k": ["v"]}\n');
    const value = [{ valueFrom: { env: 'N', json: true } }, { valueFrom: { json: true, file: 'key.json' } }];
    expect(resolved([...value, { valueFrom: { env: 'N', json: false } }], manifest(), { N: '5' })).toEqual([5, { k: ['v'] }, '5']);
  });

  it('replaces valueFrom with a value by this value as it is, at any depth', () => {
    const written = { valueFrom: { env: 'A' } };
    const value = { a: { valueFrom: { value: written } }, b: [{ valueFrom: { value: [written] } }] };
    expect(resolved(value, manifest(), { A: 'from the environment' })).toEqual({ a: written, b: [[written]] });
  });

  it.each([
    [{ valueFrom: { env: 'NONE' } }, 'all.yaml, document 1: the environment variable NONE is not set'],
    [{ valueFrom: { env: 'EMPTY' } }, 'all.yaml, document 1: the environment variable EMPTY is not set, or empty'],
    [{ valueFrom: { file: 'none' } }, 'there is no file'],
    [{ valueFrom: { file: 'no-text' } }, 'no-text is empty'],
    [{ valueFrom: {} }, 'valueFrom must have one of env, file and value'],
    [{ valueFrom: { env: 'HOME', value: 1 } }, 'valueFrom must have one of env, file and value'],
    [{ valueFrom: { envs: 'HOME' } }, 'valueFrom must have one of env, file and value'],
    [{ valueFrom: { value: '1', json: true } }, 'valueFrom must have one of env, file and value, and json only with env or file'],
    [{ valueFrom: { env: 17 } }, 'valueFrom.env must be a text'],
    [{ valueFrom: { env: 'TEXT', json: 'yes' } }, 'valueFrom.json must be true or false'],
    [{ valueFrom: { file: 'token.json', json: true } }, 'token.json is not JSON'],
  ])('refuses %j', (value, message) => {
    writeFileSync(join(folder, 'no-text'), '\n');
    writeFileSync(join(folder, 'token.json'), 'a token');
    expect(() => resolved(value, manifest(), { EMPTY: '', TEXT: 'text' })).toThrow(message);
  });

  it('shows nothing of a secret that is not JSON', () => {
    const value = { valueFrom: { env: 'TOKEN', json: true } };
    expect(() => resolved(value, manifest(), { TOKEN: 's3cret' })).toThrow(
      /^all.yaml, document 1: the environment variable TOKEN is not JSON, such as "a text" or \["a", "list"\]$/,
    );
  });
});
