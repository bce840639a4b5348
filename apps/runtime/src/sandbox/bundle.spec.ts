import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { componentOf, jobOf, startTestSandbox } from './sandbox-for-tests.js';
import type { Sandbox } from './sandbox.js';

describe('a component with neighbours', () => {
  let sandbox: Sandbox;
  beforeAll(async () => (sandbox = await startTestSandbox()));
  afterAll(() => sandbox.close());

  const app =
    'export default { type: "app", app: "github", propDefinitions: { repo: { type: "string", default: "r" } }, methods: { hi() { return "hi" } } }';

  it.each<[string, string, Record<string, string>]>([
    [
      'ES modules',
      'sources/new/new.mjs',
      {
        'sources/new/new.mjs':
          'import github from "../../github.app.mjs"; import get from "lodash.get"; export default { name: "n", props: { github, repo: { propDefinition: [github, "repo"] } }, run() { this.$emit([this.github.hi(), this.repo, get({ a: 1 }, "a")]) } }',
        'github.app.mjs': app,
      },
    ],
    [
      'CommonJS that requires packages',
      'new.js',
      {
        'new.js':
          'const github = require("./github.app.js"); module.exports = { name: "n", props: { github, repo: { propDefinition: [github, "repo"] } }, run() { this.$emit([this.github.hi(), this.repo, github.one]) } }',
        'github.app.js': `const get = require("lodash.get"); module.exports = { ${app.slice(app.indexOf('{') + 1, -1)}, one: get({ a: 1 }, "a") }`,
      },
    ],
    [
      'CommonJS that assigns to variables that it does not declare, which strict code must not',
      'new.js',
      {
        'new.js':
          'const github = require("./github.app.js"); module.exports = { name: "n", props: { github, repo: { propDefinition: [github, "repo"] } }, run() { emitted = [this.github.hi(), this.repo, this.github.one()]; this.$emit(emitted) } }',
        'github.app.js': `module.exports = { ${app.slice(app.indexOf('{') + 1, -4)}, one() { for (count of [1]); return count } } }`,
      },
    ],
    [
      'an ES module and a CommonJS neighbour',
      'new.mjs',
      {
        'new.mjs':
          'import github from "./app.js"; export default { name: "n", props: { github, repo: { propDefinition: [github, "repo"] } }, run() { this.$emit([this.github.hi(), this.repo, github.one]) } }',
        'app.js': `const { get } = require("lodash"); module.exports = { ${app.slice(app.indexOf('{') + 1, -1)}, one: get({ a: 1 }, "a") }`,
      },
    ],
    [
      'TypeScript and JSON',
      'new.ts',
      {
        'new.ts':
          'import github from "./app"; import data from "./data.json"; enum A { B = 1 } export default defineComponent({ name: "n" as string, props: { github, repo: { propDefinition: [github, "repo"] } }, run(): void { this.$emit([this.github.hi(), this.repo, data.one as A]) } })',
        'app.ts': app.replace('hi()', 'hi(): string'),
        'data.json': '{"one":1}',
      },
    ],
  ])('a component of %s becomes one file that runs', async (_, entry, files) => {
    const code = await sandbox.bundle({ entry, files });
    expect(await sandbox.inspect(componentOf(code))).toMatchObject({
      name: 'n',
      configurable_props: [
        { name: 'github', type: 'app', app: 'github' },
        { name: 'repo', type: 'string', default: 'r' },
      ],
    });
    const outcome = await sandbox.run(jobOf(code));
    expect(outcome.error).toBeNull();
    expect(outcome.emits).toEqual([{ event: '["hi","r",1]' }]);
  });

  it.each([
    ['JavaScript', 'mjs', ''],
    ['TypeScript', 'ts', 'enum A { B }\n'],
  ])('a component of %s fails with the positions in the files of its author', async (_, ending, first) => {
    const files = {
      [`a/b.${ending}`]: `import { fail } from "./c.${ending}";\n${first}export default { name: "n",\n  run() {\n    fail();\n  } }`,
      [`a/c.${ending}`]: '// a comment\nexport const fail = () => {\n  throw new Error("x"); };',
    };
    const { error } = await sandbox.run(jobOf(await sandbox.bundle({ entry: `a/b.${ending}`, files })));
    const positions = [...error!.stack.matchAll(/component:\/\/\/\w+\/(\S+:\d+):\d+/g)].map(([, position]) => position);
    expect(positions).toEqual([`a/c.${ending}:3`, `a/b.${ending}:${first === '' ? 4 : 5}`]);
  });

  it.each([
    ['throws', 'export const used = 1;\n\nthrow new Error("no");', 'Error: no (lib/c.mjs, line 3)', 3],
    ['throws through a function of the entry', 'import { fail } from "../b.mjs";\nfail();', 'Error: no (b.mjs, line 3)', 3],
    ['imports what a package does not have', '\nimport { nothing } from "axios"; nothing();', '(lib/c.mjs, line 2)', 2],
  ])('names the line of its author when a neighbour %s while it is loaded', async (_, neighbour, message, line) => {
    const entry = 'import "./lib/c.mjs";\nexport function fail() {\n  throw new Error("no"); }\nexport default { name: "n" };';
    const code = await sandbox.bundle({ entry: 'b.mjs', files: { 'b.mjs': entry, 'lib/c.mjs': neighbour } });
    const rejection = await sandbox.inspect(componentOf(code)).catch((error: Error) => error);
    const file = message.includes('lib/c.mjs') ? 'lib/c.mjs' : 'b.mjs';
    expect(rejection).toMatchObject({ name: 'ComponentRejected', message: expect.stringContaining(message), file, line });
  });

  it.each<[string, Record<string, string>, string, number | null]>([
    [
      'an import that is not there',
      { 'a/b.mjs': '\nimport x from "../c.mjs"; export default { name: x }' },
      'Could not resolve "../c.mjs" (a/b.mjs, line 2)',
      2,
    ],
    [
      'a neighbour that does not parse',
      { 'a/b.mjs': 'import x from "./c.mjs"; export default { name: x }', 'a/c.mjs': 'export default {\n  a: ,\n}' },
      '(a/c.mjs, line 2)',
      2,
    ],
    ['a file below another file', { 'a/b.mjs': '', 'a/b.mjs/c.mjs': '' }, '"a/b.mjs/c.mjs" cannot be a file', null],
    ['a file that is a folder', { 'a/b.mjs/c.mjs': '', 'a/b.mjs': '' }, '"a/b.mjs" cannot be a file of the component: it is also', null],
    ['a name that no file can have', { 'a/b.mjs': '', [`a/${'c'.repeat(300)}.mjs`]: '' }, 'its path is too long', null],
    ['a path out of the folder', { 'a/b.mjs': '', '../x.mjs': '' }, '"../x.mjs" is not a path below', null],
    ['an absolute path', { 'a/b.mjs': '', '/etc/x.mjs': '' }, '"/etc/x.mjs" is not a path below', null],
    [
      'a file of the machine',
      { 'a/b.mjs': 'import x from "../../../../../../../../etc/hostname"; export default x' },
      'Could not resolve',
      1,
    ],
  ])('is refused for %s', async (_, files, message, line) => {
    const rejection = await sandbox.bundle({ entry: 'a/b.mjs', files }).catch((error: Error) => error);
    expect(rejection).toMatchObject({ name: 'ComponentRejected', message: expect.stringContaining(message), line });
  });
});
