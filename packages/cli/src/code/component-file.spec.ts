import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { nameOf, readComponent } from './component-file.js';

let folder: string;
const file = (name: string, content: string | Buffer): string => {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-component-'))));
afterAll(() => rmSync(folder, { recursive: true }));

describe('readComponent', () => {
  it('returns a file without neighbours as it is', async () => {
    const code = "import axios from 'axios';\nexport default { name: './x', run() { throw 1; } };\n";
    const component = await readComponent(file('one.mjs', code));
    expect(component).toMatchObject({ code, files: [join(folder, 'one.mjs')] });
    expect(component.located('Error: x\n    at run (component:///0a1b/component.js:2:38)')).toBe(
      `Error: x\n    at run (${join(folder, 'one.mjs')}:2:38)`,
    );
    expect([component.placeOf(2, 38), component.placeOf(null, null)]).toEqual([`${join(folder, 'one.mjs')}:2:38`, join(folder, 'one.mjs')]);
  });

  it('drops the byte order mark that some editors write', async () => {
    expect((await readComponent(file('marked.mjs', '\ufeffexport default {};\n'))).code).toBe('export default {};\n');
  });

  it('bundles a file with its neighbours, with a map to the lines of the author', async () => {
    file('parts/broken.mjs', '// first line\nexport function broken() {\n  throw new Error("x");\n}\n');
    const path = file(
      'two.mjs',
      "import axios from 'axios';\nimport { broken } from './parts/broken.mjs';\nexport default { name: 'Two', run() { axios; broken(); } };\n",
    );
    const component = await readComponent(path);
    expect(component.files.sort()).toEqual([join(folder, 'parts/broken.mjs'), path]);
    expect(component.code).toContain('from "axios"');
    const [, map] = /\/\/# sourceMappingURL=data:application\/json;base64,(\S+)\n$/.exec(component.code)!;
    expect(JSON.parse(Buffer.from(map!, 'base64').toString())).toMatchObject({ sources: ['two.mjs', 'parts/broken.mjs'] });
    expect(component.located('at broken (component:///0a1b/parts/broken.mjs:3:9)')).toBe(
      `at broken (${relative(process.cwd(), join(folder, 'parts/broken.mjs'))}:3:9)`,
    );
    const lines = component.code.split('\n');
    const line = lines.findIndex((each) => each.includes('throw new Error')) + 1;
    expect(component.placeOf(line, lines[line - 1]!.indexOf('throw') + 1)).toBe(
      `${relative(process.cwd(), join(folder, 'parts/broken.mjs'))}:3:3`,
    );
  });

  it('refuses a neighbour that is not UTF-8, because the bundler would replace its bytes', async () => {
    file('parts/latin1.mjs', Buffer.from("export const name = 'caf\xe9';\n", 'latin1'));
    const path = file('three.mjs', "import { name } from './parts/latin1.mjs';\nexport default { name };\n");
    await expect(readComponent(path)).rejects.toThrow(/parts\/latin1\.mjs is not UTF-8$/);
  });

  it.each([
    ['../helper.js', 'helper.ts'],
    ['../lib', 'lib/index.ts'],
    ['../text', 'text.mjs'],
    ['../both', 'both.ts'],
  ])('bundles what %s stands for: %s', async (specifier, expected) => {
    for (const name of ['helper.ts', 'lib/index.ts', 'text.mjs', 'both.ts', 'both.js']) file(name, 'export const value = 1;\n');
    const { files } = await readComponent(
      file('sources/imports.ts', `import { value } from '${specifier}';\nexport default { name: value };\n`),
    );
    expect(files).toContain(join(folder, expected));
  });

  it('keeps CommonJS as it is, because an ES module would be strict', async () => {
    file('parts/app.js', "module.exports = { package: require('shortid') };\n");
    const path = file('common.js', "const app = require('./parts/app');\nmodule.exports = { name: 'C', run() { undeclared = app; } };\n");
    const { code, placeOf } = await readComponent(path);
    const module = { exports: {} as { name: string; run(): void } };
    const globals: Record<string, unknown> = { module, require: (name: string) => name };
    runInNewContext(code, globals);
    module.exports.run();
    expect([module.exports.name, globals.undeclared]).toEqual(['C', { package: 'shortid' }]);
    const lines = code.split('\n');
    const line = lines.findIndex((each) => each.includes('undeclared')) + 1;
    expect(placeOf(line, 1)).toMatch(/common\.js:\d/);
  });

  it('gives the CommonJS neighbours of an ES module the packages of the component', async () => {
    file('parts/app.js', "module.exports = { package: require('shortid') };\n");
    const { code } = await readComponent(file('mixed.mjs', "import app from './parts/app.js';\nexport default { name: 'M', app };\n"));
    expect(code).toMatch(/^const require = globalThis\[Symbol\.for\("sluice\.require"\)\]\(import\.meta\.url\);\n/);
  });

  it('reports the place of a mistake in a neighbour, and a missing file', async () => {
    file('parts/bad.mjs', 'export const a = ;');
    await expect(readComponent(file('bad.mjs', "import './parts/bad.mjs';"))).rejects.toThrow(/parts\/bad\.mjs:1:18: Unexpected ";"/);
    await expect(readComponent('none.mjs')).rejects.toThrow('there is no file none.mjs');
  });
});

it.each([
  ['price-watch.mjs', 'price-watch'],
  ['/a/b.c.ts', 'b.c'],
  ['/org/repo/blob/main/x.mjs', 'x'],
])('nameOf(%s) is %s', (path, name) => {
  expect(nameOf(path)).toBe(name);
});
