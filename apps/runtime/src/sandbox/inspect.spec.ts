import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { componentOf, startTestSandbox } from './sandbox-for-tests.js';
import type { Sandbox } from './sandbox.js';

describe('inspecting a component', () => {
  let sandbox: Sandbox;
  const spent = new Map<string, number>();
  const spend = (account: string, ms: number) => void spent.set(account, (spent.get(account) ?? 0) + ms);
  beforeAll(async () => (sandbox = await startTestSandbox({ blanks: 2 }, spend)));
  afterAll(() => sandbox.close());

  const inspect = (code: string) => sandbox.inspect(componentOf(code));
  const whole = {
    name: 'n',
    key: null,
    version: null,
    description: null,
    dedupe: null,
    concurrency: 1,
    hooks: [],
    has_run: true,
    configurable_props: [],
  };

  it('charges its account for the time that the result takes the main thread', async () => {
    const code = (more: string) => `const text = 'x'.repeat(1000); ${more}
      export default { name: 'n', props: Object.fromEntries(Array.from({ length: 200 }, (_, n) => ['p' + n, { type: 'string', text }])), run() {} }`;
    await sandbox.inspect(componentOf(code('')), { accountId: 'u_described' });
    expect(spent.get('u_described')).toBeGreaterThan(0);
    const frame = `import fs from 'fs'; const m = Buffer.alloc(3e6); m.writeUInt32BE(m.length - 4);
      for (let at = 0; at < m.length;) try { at += fs.writeSync(3, m, at) } catch {}`;
    await expect(sandbox.inspect(componentOf(code(frame)), { accountId: 'u_broken' })).rejects.toThrow('no JSON');
    expect(spent.get('u_broken')).toBeGreaterThan(0);
  });

  it.each([
    ['an ES module', 'export default { name: "n", run() {} }'],
    ['CommonJS', 'module.exports = { name: "n", run() {} }'],
    [
      'CommonJS made of an ES module',
      'Object.defineProperty(exports, "__esModule", { value: true }); exports.default = { name: "n", run() {} }',
    ],
    ['CommonJS with a default', 'exports.default = { name: "n", run() {} }'],
    ['defineComponent, as a global', 'export default defineComponent({ name: "n", run() {} })'],
    ['defineSource, as a global', 'module.exports = defineSource({ name: "n", run: () => 1 })'],
    [
      'defineComponent, imported',
      'import { defineComponent } from "@pipedream/types"; export default defineComponent({ name: "n", run() {} })',
    ],
    [
      'defineSource, required',
      'const { defineSource } = require("@pipedream/types"); module.exports = defineSource({ name: "n", run() {} })',
    ],
    [
      'TypeScript',
      'interface E { a?: number }\nexport default defineComponent({ name: "n", async run(event: E): Promise<void> { console.log(event as E) } })',
    ],
    [
      'TypeScript with types alone imported',
      'import type { Readable } from "stream"; export default { name: "n", run(s: Readable) { return s } }',
    ],
    [
      'TypeScript with types among the imported names',
      'import { defineSource, SourceHttpRunOptions } from "@pipedream/types"; import axios, { AxiosRequestConfig as Config } from "axios"; export default defineSource({ name: "n", async run(event: SourceHttpRunOptions) { const config: Config = {}; axios.get(event.path, config) } })',
    ],
    [
      'TypeScript that imports nothing but types',
      'import Axios, * as others from "axios"; import { AxiosError } from "axios"; module.exports = { name: "n", run(a: Axios, b: others.X, c: AxiosError) {} }',
    ],
    [
      'TypeScript with an enum and types among the imported names',
      'import { AxiosError } from "axios"; enum A { B = 1 }\nexport default { name: "n", run(error: AxiosError) { return A.B } }',
    ],
    ['TypeScript with an enum', 'enum A { B = 1 }\nexport default { name: "n" as string, run() { return A.B } }'],
    ['TypeScript as CommonJS', 'const a: number = 1; module.exports = { name: "n", run(): number { return a } }'],
    ['top-level await', 'const n = await Promise.resolve("n"); export default { name: n, run() {} }'],
    ['a top-level await of a package', 'const { default: axios } = await import("axios"); export default { name: "n", run: axios.get }'],
  ])('%s', async (_, code) => {
    expect(await inspect(code)).toEqual(whole);
  });

  it('returns everything that the API shows', async () => {
    const code = `
      const app = { type: "app", app: "github", propDefinitions: { repo: { type: "string", label: "Repo", async options() { return [] } } }, methods: { x() {} } };
      export default {
        key: "k", name: "n", version: "0.0.1", description: "d", type: "source", dedupe: "unique", concurrency: 5,
        props: {
          db: "$.service.db",
          http: { type: "$.interface.http", customResponse: true },
          timer: { type: "$.interface.timer", default: { intervalSeconds: 60 } },
          fixed: { type: "$.interface.timer", static: { cron: "0 8 * * *" } },
          github: app,
          repo: { propDefinition: [app, "repo"], description: "which" },
          many: { type: "string[]", optional: true, options: ["a", { label: "B", value: "b" }], default: ["a"], secret: true, unknownOne: { deep: [1] } },
          n: { type: "integer", min: 1, max: 9, hidden: false, reloadProps: true, validate() {} },
        },
        additionalProps() { return {} },
        hooks: { async activate() {}, deploy() {}, other() {} },
        methods: { m() {} },
        async run() {},
      }`;
    expect(await inspect(code)).toEqual({
      key: 'k',
      name: 'n',
      version: '0.0.1',
      description: 'd',
      dedupe: 'unique',
      concurrency: 5,
      hooks: ['deploy', 'activate'],
      has_run: true,
      configurable_props: [
        { name: 'db', type: '$.service.db' },
        { name: 'http', type: '$.interface.http', customResponse: true },
        { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 60 } },
        { name: 'fixed', type: '$.interface.timer', static: { cron: '0 8 * * *' }, default: { cron: '0 8 * * *' } },
        { name: 'github', type: 'app', app: 'github' },
        { name: 'repo', type: 'string', label: 'Repo', description: 'which', remoteOptions: true },
        {
          name: 'many',
          type: 'string[]',
          optional: true,
          options: ['a', { label: 'B', value: 'b' }],
          default: ['a'],
          secret: true,
          unknownOne: { deep: [1] },
        },
        { name: 'n', type: 'integer', min: 1, max: 9, hidden: false, reloadProps: true },
      ],
      warnings: [{ message: expect.stringContaining('`hooks.other` is never called'), line: 16, column: 52 }],
    });
  });

  it('returns texts that can be stored, also where code cuts an emoji or has a NUL character', async () => {
    const code = String.raw`export default { name: "n", props: { a: { type: "string", default: "\0", label: "Hi 👋".slice(0, 4) } }, run() {} }`;
    expect(await inspect(code)).toEqual({
      ...whole,
      configurable_props: [{ name: 'a', type: 'string', default: '\ufffd', label: 'Hi \ufffd' }],
    });
  });

  it.each([
    [
      '201 modules',
      Array.from({ length: 201 }, (_, n) => `import "absent-${n}";`).join('\n'),
      'The code imports 201 modules that are not part of Sluice; the limit is 200',
    ],
    ['a module with a long name', `import "${'x'.repeat(513)}";`, 'has a name of 513 characters; the limit is 512'],
  ])('refuses %s that would have to be installed', async (_, code, message) => {
    await expect(sandbox.inspect(componentOf(`${code} export default { name: "n" }`), { installs: true })).rejects.toMatchObject({
      name: 'ComponentRejected',
      message: expect.stringContaining(message),
    });
  });

  it('describes a component with many warnings', async () => {
    const props = Array.from({ length: 100 }, (_, n) => `p${n}: { type: "${'x'.repeat(2000)}${n}" }`);
    const { warnings } = await inspect(`export default { name: "n", props: { ${props.join()} } }`);
    expect(warnings).toHaveLength(20);
  });

  it('accepts a component without run', async () => {
    expect(await inspect('export default { name: "n", props: { http: "$.interface.http" } }')).toMatchObject({ has_run: false });
  });

  it.each<[string, string, string | RegExp, number | null]>([
    ['the end of a module missing', 'export default {\n  name: "n",\n  run() {\n', 'The code does not parse: ', 3],
    ['an expression missing', 'module.exports = {\n  name: ,\n}', 'The code does not parse: Expression expected (line 2)', 2],
    [
      'an expression missing in TypeScript',
      'const a: number = 1;\nconst b: = ;\nexport default { name: "n" }',
      'The code does not parse: ',
      2,
    ],
    [
      'a name that is declared twice',
      "export default {\n  name: 'n',\n  run() {\n    let x; let x;\n  },\n};",
      "The code does not parse: Identifier 'x' has already been declared (line 4)",
      4,
    ],
    ['a second default export', "export default {\n  name: 'n',\n};\nexport default {};", 'The code does not parse: ', 4],
    [
      'a name that is declared twice, in TypeScript',
      'const a: number = 1;\nconst a: string = "";\nexport default { name: a };',
      'The code does not parse: ',
      2,
    ],
    ['no JavaScript at all', 'this is not code', 'The code does not parse: ', 1],
    ['an empty text', '', 'The code exports no component', null],
    ['no export', 'const a = 1', 'The code exports no component', null],
    ['an empty default export', 'export default {}', 'The code exports no component: it has to export an object with a `name`', null],
    ['an array as the export', 'export default []', 'The code exports no component: it has to export an object with a `name`', null],
    ['a function as the export', 'export default () => 1', 'The code exports no component: it has to export an object with a `name`', null],
    ['only named exports', 'export const a = { name: "n" }', 'The code exports no component', null],
    ['no name', 'export default { run() {} }', 'The component has no `name`', null],
    ['an empty name', 'export default { name: " ", run() {} }', 'The component has no `name`', null],
    ['an action', 'export default { name: "n", type: "action", run() {} }', 'The component is an action, not a source', null],
    ['an app', 'export default { type: "app", app: "x" }', 'The component is an app, not a source', null],
    ['a run that is not a function', 'export default { name: "n", run: 1 }', '`run` is not a function', null],
    [
      'an unknown dedupe',
      'export default { name: "n", dedupe: "newest" }',
      '`dedupe` is "newest"; it must be one of "unique", "greatest", "last"',
      null,
    ],
    ['a prop without a type', 'export default { name: "n", props: { a: { label: "A" } } }', 'The prop `a` has no `type`', null],
    ['a prop that is not an object', 'export default { name: "n", props: { a: 1 } }', 'The prop `a` is 1', null],
    [
      'a propDefinition that the app lacks',
      'export default { name: "n", props: { a: { propDefinition: [{ type: "app" }, "b"] } } }',
      'The prop `a` takes its definition from "b"',
      null,
    ],
    ...['', 'x'.repeat(257), 'a\0', '\ud800'].map((name): [string, string, string, null] => [
      `a prop with the name ${JSON.stringify(name.slice(0, 10))}`,
      `export default { name: "n", props: { [${JSON.stringify(name)}]: "string" } }`,
      `The prop name ${JSON.stringify(name.slice(0, 50))} must have 1 to 256 characters`,
      null,
    ]),
    [
      'props too large',
      'export default { name: "n", props: { a: { type: "string", options: "x".repeat(300_000) } } }',
      '`props` has 300',
      null,
    ],
    [
      '501 props',
      `export default { name: "n", props: { ${Array.from({ length: 501 }, (_, n) => `p${n}: "string"`).join()} } }`,
      'The component has 501 props; the limit is 500',
      null,
    ],
    ...['name', 'key', 'version', 'description'].map((field): [string, string, string, null] => [
      `a ${field} that is too long`,
      `export default { name: "n", ${field}: "x".repeat(65_537) }`,
      `\`${field}\` has 65537 characters; the limit is 65536`,
      null,
    ]),
    [
      'a type that is too long',
      'export default { name: "n", props: { a: "x".repeat(65_537) } }',
      '`props.a.type` has 65537 characters; the limit is 65536',
      null,
    ],
    [
      'texts that are too long together',
      'const t = "\\u0001".repeat(65_536); export default { name: t, key: t, version: t, description: t }',
      'characters of JSON; the limit is 600000',
      null,
    ],
    ['a dedupe with a long name', 'export default { name: "n", dedupe: "x".repeat(20_000) }', '`dedupe` is "xxx', null],
    [
      'props too deep',
      'let o = 1; for (let i = 0; i < 200; i++) o = [o]; export default { name: "n", props: { a: { type: "any", default: o } } }',
      '`props` is nested deeper than 100 levels',
      null,
    ],
    [
      'types too deep',
      `const a: ${'['.repeat(20_000)}${']'.repeat(20_000)} = 1; export default { name: "n" }`,
      'The code does not parse: it is nested too deeply',
      null,
    ],
    [
      'types too deep beside an enum',
      `enum E { A } const a: ${'A<'.repeat(20_000)}B${'>'.repeat(20_000)} = 1; export default { name: "n" }`,
      'The code does not parse: it is nested too deeply',
      null,
    ],
    ['props that are not JSON', 'export default { name: "n", props: { a: { type: "any", default: 1n } } }', 'BigInt', null],
    [
      'an unlisted package',
      '\nimport x from "left-pad"; export default { name: "n" }',
      /^The module "left-pad" is not available\. Available packages: @.* \(line 2\)$/,
      2,
    ],
    ['an unlisted package, required', 'require("aws-sdk"); module.exports = { name: "n" }', 'The module "aws-sdk" is not available', 1],
    [
      'an unlisted module of Node',
      'require("child_process"); module.exports = { name: "n" }',
      /^The module "child_process" is not available\. Available modules of Node: assert, [^.]* \(line 1\)$/,
      1,
    ],
    [
      'an unlisted module of Node, imported with its prefix',
      'import cp from "node:child_process"; export default { name: "n" }',
      /^The module "node:child_process" is not available\. Available modules of Node: assert, [^.]* \(line 1\)$/,
      1,
    ],
    [
      'a neighbour',
      'import x from "../../app.mjs"; export default { name: "n" }',
      /^The module "..\/..\/app.mjs" cannot be loaded: a component is one file; `sluice deploy FILE` .* \(line 1\)$/,
      1,
    ],
    ['its folder', 'import x from "."; export default { name: "n" }', 'The module "." cannot be loaded: a component is one file', 1],
    ...['https://esm.sh/nanoid', 'npm:nanoid'].map((url): [string, string, RegExp, number] => [
      `the URL ${url}`,
      `export default { name: "n" }\nimport x from "${url}"`,
      /^The module "[^ ]*nanoid" cannot be loaded: import packages by their names in the registry of npm, such as "lodash" or "lodash@4" \(line 2\)$/,
      2,
    ]),
    ...['import x from "dayjs/plugin/nope"; export default { name: "n" }', 'require("dayjs/plugin/nope")'].map(
      (code): [string, string, RegExp, number] => [
        `a path that a package does not have: ${code}`,
        code,
        /^The module "dayjs\/plugin\/nope" does not exist in its package \(line 1\)$/,
        1,
      ],
    ),
    [
      'a path that a package does not export',
      'import x from "axios/nope"; export default { name: "n" }',
      /^The module "axios\/nope" does not exist in its package \(line 1\)$/,
      1,
    ],
    [
      'an export that a package does not have',
      'import { nothing } from "axios"; export default { name: "n" }',
      /^The module "axios" has no export "nothing" in version 1\.\d+\.\d+, which is part of Sluice\. Another version can be imported as "axios@VERSION" \(line 1\)$/,
      1,
    ],
    [
      'an export that a package does not have, used by TypeScript',
      'import { nothing } from "axios@1"; export default { name: "n" as string, run: nothing }',
      'The module "axios@1" has no export "nothing" in version 1.',
      1,
    ],
    [
      'an export that Node does not have',
      'import { nothing } from "node:fs"; export default { name: "n" as string, run: nothing }',
      /^The module "node:fs" has no export "nothing" \(line 1\)$/,
      1,
    ],
    [
      'a default export that a package does not have',
      'import types from "@pipedream/types"; export default types.defineSource({ name: "n" })',
      /^The module "@pipedream\/types" has no default export \(line 1\)$/,
      1,
    ],
    [
      'a throw while it is loaded',
      '\nthrow new TypeError("no");',
      'The code threw an error while it was loaded: TypeError: no (line 2)',
      2,
    ],
    [
      'a throw of TypeScript with an enum while it is loaded',
      'enum A {\n  B,\n  C,\n}\n\nthrow new TypeError(A[A.C]);\nexport default { name: "n" };',
      'The code threw an error while it was loaded: TypeError: C (line 6)',
      6,
    ],
    [
      'a JSON.parse that fails while it is loaded',
      '\nJSON.parse("{");\nmodule.exports = { name: "n" }',
      'The code threw an error while it was loaded: SyntaxError: Expected property name',
      2,
    ],
    ['loading that loops', 'for (;;);', 'The code blocked the event loop', null],
    ['loading that ends its process', 'process.exit(0)', 'process.exit() is not available to a component', 1],
    [
      'a concurrency that is not a whole number',
      'export default { name: "n", concurrency: 1e300 }',
      '`concurrency` is 1e+300; it must be',
      null,
    ],
    ['retries that are not a whole number', 'export default { name: "n", retries: 1e300 }', '`retries` is 1e+300; it must be', null],
    [
      'a BigInt in a prop',
      'export default { name: "n", props: { a: { type: "integer", default: 1n } } }',
      '`props` is not JSON: Do not know how to serialize a BigInt',
      null,
    ],
    [
      'a circle in a prop',
      'const a = { type: "string" }; a.a = a; export default { name: "n", props: { a: { type: "string", b: a } } }',
      '`props` is not JSON: Converting circular structure',
      null,
    ],
    [
      'a getter that throws',
      'export default { get name() { throw new Error("g") } }',
      'The code threw an error while it was loaded: Error: g (line 1)',
      1,
    ],
  ])('refuses %s', async (_, code, message, line) => {
    const rejection = await inspect(code).catch((error: Error) => error);
    const expected = typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message);
    expect(rejection).toMatchObject({ name: 'ComponentRejected', message: expected, line });
  });

  it.each([
    ['never ends', 'await new Promise(() => {}); export default { name: "n" }'],
    [
      'is almost idle',
      'for (let i = 0; ; i++) { await new Promise((r) => setTimeout(r, 20)); for (const t = Date.now(); Date.now() - t < 5; ); }',
    ],
  ])('refuses loading that %s', async (_, code) => {
    const impatient = await startTestSandbox({ limits: { inspectIdleMs: 700 } });
    await expect(impatient.inspect(componentOf(code))).rejects.toThrow('The code did nothing for 700 ms while it was loaded');
    await impatient.close();
  });

  it.each([
    'import { axios } from "@pipedream/platform"; axios.x',
    'import axios, { AxiosError, isAxiosError } from "axios"; new AxiosError(""); isAxiosError()',
    'import axios from "axios@0.19.2"; axios.get',
    'import _, { get, uniqBy } from "lodash"; _.chain; get({}, "a"); uniqBy([], "a")',
    'import uniq from "lodash/uniq"; uniq([])',
    'import get from "lodash.get"; get({}, "a")',
    'import { v4 as uuid } from "uuid"; uuid()',
    'import dayjs from "dayjs"; import utc from "dayjs/plugin/utc"; dayjs.extend(utc)',
    'import moment from "moment"; moment()',
    'import fetch from "node-fetch"; fetch.call',
    'import FormData from "form-data"; new FormData()',
    'import retry from "async-retry"; retry.call',
    'import Parser from "rss-parser"; new Parser()',
    'import FeedParser from "feedparser"; new FeedParser()',
    'import { XMLParser } from "fast-xml-parser"; new XMLParser().parse("<a>1</a>")',
    'import hash from "object-hash"; hash({})',
    'import { parse } from "flatted"; parse.call',
    'import cron from "cron-parser"; cron.parseExpression("* * * * *")',
    'import crypto, { createHmac } from "crypto"; createHmac("sha1", "a"); crypto.randomUUID()',
    'import { setTimeout as sleep } from "node:timers/promises"; await sleep(1)',
    'const { default: axios } = await import("axios"); axios.get',
    'import { URL } from "url"; import querystring from "querystring"; import zlib from "zlib"; import { Readable } from "stream"; zlib.gzipSync("a"); Readable.from([]); querystring.parse("a"); new URL("http://a")',
  ])('%s', async (line) => {
    expect(await inspect(`${line};\nexport default { name: "n", run() {} }`)).toEqual(whole);
  });

  it.each([
    'const axios = require("axios"); axios.get.call',
    'const { v4 } = require("uuid"); v4()',
    'const { get } = require("lodash"); get({}, "a")',
    'import("axios").then((m) => m.default.get)',
  ])('CommonJS: %s', async (line) => {
    expect(await inspect(`${line};\nmodule.exports = { name: "n", run() {} }`)).toEqual(whole);
  });

  it('reads the components of an account while another’s never load', async () => {
    const until = Date.now() + 4000;
    const attack = (n: number) =>
      sandbox
        .inspect(componentOf(`await new Promise(() => {}); export default { name: "${n}" }`), { accountId: 'u_hostile', until })
        .catch(({ name }: Error) => name);
    const attacks = Array.from({ length: 40 }, (_, n) => attack(n));
    const victim = () => sandbox.inspect(componentOf('export default { name: "n", run() {} }'), { accountId: 'u_victim' });
    expect(await Promise.all([victim(), victim(), victim(), victim()])).toEqual([whole, whole, whole, whole]);
    const ends = await Promise.all(attacks);
    expect(ends.filter((end) => end === 'TooMuchWaiting')).toHaveLength(18);
    expect(ends).toContain('ComponentRejected');
    expect(ends).toContain('CallerGone');
  }, 30_000);

  it('accepts components whose turn comes later than the limit of one inspection', async () => {
    const inspectMs = 5000;
    const patient = await startTestSandbox({ limits: { inspectMs, inspectIdleMs: inspectMs } });
    const slow = (n: number) => componentOf(`await new Promise((r) => setTimeout(r, 1800)); export default { name: "${n}", run() {} }`);
    const until = Date.now() + 60_000;
    const begun = performance.now();
    const inspections = Array.from({ length: 6 }, (_, n) => patient.inspect(slow(n), { accountId: 'u_many', until }));
    expect(await Promise.all(inspections)).toEqual(inspections.map((_, n) => ({ ...whole, name: String(n) })));
    expect(performance.now() - begun).toBeGreaterThan(inspectMs);
    await patient.close();
  }, 70_000);

  it('ends with an inspection that nobody waits for', async () => {
    const code = componentOf('for (;;) await new Promise((r) => setImmediate(r))');
    await expect(sandbox.inspect(code, { until: Date.now() + 300 })).rejects.toThrow('nobody waits for it any more');
    await expect(sandbox.inspect(code, { until: Date.now() - 1 })).rejects.toMatchObject({ name: 'CallerGone' });
  });
});
