import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { checkComponent } from './check-component.js';
import { localFiles } from './local-files.js';
import { showComponent, showWarnings } from './show.js';

describe('a look at a component in a file', () => {
  let folder: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-check-'));
    sandbox = await startTestSandbox();
  });
  afterAll(async () => {
    await sandbox.close();
    await rm(folder, { recursive: true });
  });

  const check = async (files: Record<string, string | Buffer>, maxBytes = 10_000) => {
    const base = await mkdtemp(join(folder, 'case-'));
    for (const [path, code] of Object.entries(files)) {
      await mkdir(dirname(join(base, path)), { recursive: true });
      await writeFile(join(base, path), code);
    }
    return checkComponent(sandbox, await localFiles(join(base, Object.keys(files)[0]!)), maxBytes);
  };

  it('takes no other file in place of a neighbour that is not UTF-8, but one in place of a folder', async () => {
    const entry = 'import text from "./lib"; export default { name: "n", description: text, run() {} }';
    const other = { 'lib.js': 'export default "other"' };
    await expect(check({ 'a.mjs': entry, 'lib.ts': Buffer.from('// caf\xe9', 'latin1'), ...other })).rejects.toThrow('lib.ts is not UTF-8');
    expect(await check({ 'a.mjs': entry, 'lib.ts/x': '', ...other })).toMatchObject({ description: { description: 'other' } });
  });

  it('describes a component that consists of several files', async () => {
    const checked = await check({
      'sources/new.mjs':
        'import app from "../app.mjs";\nexport default { name: "New", key: "k", version: "0.1", dedupe: "last", props: { app, n: { type: "integer", default: 3, optional: true } }, hooks: { activate() {} }, run() {} }',
      'app.mjs': 'import "./lib"; export default { type: "app", app: "shop" }',
      'lib/index.js': 'export const used = 1',
    });
    if (!checked.ok) throw new Error(checked.error);
    expect(checked.description).toMatchObject({
      name: 'New',
      key: 'k',
      version: '0.1',
      dedupe: 'last',
      hooks: ['activate'],
      has_run: true,
    });
    expect(showComponent(checked.description).split('\n')).toEqual([
      'name      New',
      'key       k',
      'version   0.1',
      'run       yes',
      'hooks     activate',
      'dedupe    last',
      'props',
      '  app  app',
      '  n    integer, optional, default 3',
    ]);
  });

  it('finds neighbours of TypeScript, which are imported by the names of their output or of their folder', async () => {
    const checked = await check({
      'a.ts': 'import { b } from "./b.js"; import { c } from "./lib"; import d from "./d.txt"; export default { name: b + c + d }',
      'b.ts': 'export const b: string = "b";',
      'lib/index.ts': 'export const c: string = "c";',
      'd.txt': 'd',
    });
    expect(checked).toMatchObject({ ok: true, description: { name: 'bcd' } });
  });

  it('shows warnings at their places in the files of the author', async () => {
    const hooks = '\n  hooks: { actvate() {} },';
    const shown = async (files: Record<string, string>): Promise<string> => {
      const checked = await check(files);
      if (!checked.ok) throw new Error(checked.error);
      return showWarnings(`shop/${Object.keys(files)[0]!}`, checked.entry, checked.component.code, checked.description);
    };
    expect(await shown({ 'one.mjs': `export default { name: "One",${hooks} run() {} };` })).toMatch(
      /^shop\/one\.mjs:2:12: warning: .*actvate/,
    );
    expect(
      await shown({
        'parts/two.mjs': `import "../lib.mjs";\n\nexport default { name: "Two",${hooks} run() {} };`,
        'lib.mjs': 'export {};',
      }),
    ).toMatch(/^shop\/parts\/two\.mjs:4:12: warning: .*actvate/);
  });

  it.each<[string, Record<string, string>, string, number | null]>([
    ['an import that is missing', { 'a.mjs': '\nimport x from "./x.mjs"; export default { name: x }' }, 'Could not resolve "./x.mjs"', 2],
    ['code that does not parse', { 'a.mjs': 'export default {\n  name: ,\n}' }, 'does not parse', 2],
    ['code that throws', { 'a.mjs': '\n\nthrow new Error("no");' }, 'threw an error while it was loaded: Error: no', 3],
    [
      'a module that is not there',
      { 'a.mjs': 'import x from "left-pad"; export default { name: "x" }' },
      'The module "left-pad" is not available',
      1,
    ],
    ['no name', { 'a.mjs': 'export default { run() {} }' }, 'no `name`', null],
    ['too much of it', { 'a.mjs': `export default { name: "${'x'.repeat(10_000)}" }` }, 'the limit is 10000', null],
  ])('reports the problem: %s', async (_, files, error, line) => {
    const checked = await check(files);
    expect(checked).toEqual({ ok: false, error: expect.stringContaining(error), file: null, line: line ?? null });
  });

  it.each([
    ['that throws', 'lib/b.mjs', '\nthrow new Error("no");', 2],
    ['that does not parse', 'lib/b.mjs', 'export default {\n  a: ,\n}', 2],
    ['with a module that is not there', 'lib/b.mjs', '\nimport x from "left-pad"; x();', 2],
    ['above its folder', 'b.mjs', '\nthrow new Error("no");', 2],
  ])('reports the file and the line of a problem in a neighbour %s', async (_, file, code, line) => {
    const isBelow = file.includes('/');
    const entry = isBelow ? 'a.mjs' : 'sources/a.mjs';
    const checked = await check({ [entry]: `import "./${isBelow ? '' : '../'}${file}";\nexport default { name: "n" };`, [file]: code });
    expect(checked).toMatchObject({ ok: false, file: isBelow ? file : `../${file}`, line });
  });
});
