import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { componentOf, startTestSandbox } from './sandbox-for-tests.js';
import type { Sandbox } from './sandbox.js';

describe('the warnings about a component', () => {
  let sandbox: Sandbox;
  beforeAll(async () => (sandbox = await startTestSandbox()));
  afterAll(() => sandbox.close());

  const warnings = async (code: string): Promise<string[]> =>
    ((await sandbox.inspect(componentOf(code))).warnings ?? []).map(({ line, column, message }) => `${line}:${column} ${message}`);

  it.each<[string, string, string[]]>([
    [
      'a misspelt hook',
      'export default {\n  name: "n",\n  hooks: { deply() {} },\n}',
      ['3:12 `hooks.deply` is never called; did you mean `deploy`?'],
    ],
    [
      'a misspelt hook of TypeScript with an enum, whose lines the parser does not know',
      'enum A {\n  B,\n}\nexport default {\n  name: "n",\n  hooks: { deply() {} },\n}',
      ['null:null `hooks.deply` is never called; did you mean `deploy`?'],
    ],
    [
      'a response that waits for the events, of an interface that responds itself',
      'export default { name: "n", props: {\n  http: { type: "$.interface.http", respondWhenStored: true },\n  both: { type: "$.interface.http", customResponse: true, respondWhenStored: true },\n} }',
      ['2:37 `props.http.respondWhenStored` has no effect without `customResponse: true`'],
    ],
    [
      'a generator, whose code never runs',
      'export default { name: "n", async *run() {} }',
      ['1:36 `run` is a generator: calling it runs none of its code, so it must be a function or an async function'],
    ],
    [
      'props that cannot be read, or hide a method',
      'export default {\n  name: "n",\n  props: { $emit: "string", a: "string", b: "string" },\n  methods: { a() {}, c() {} },\n}',
      [
        '3:12 `props.$emit` cannot be read: `this.$emit` is the function that emits',
        '3:29 `props.a` hides `methods.a`: both would be `this.a`',
      ],
    ],
    [
      'a hook of another system',
      'export default { name: "n", hooks: { cleanUp() {} } }',
      ['1:38 `hooks.cleanUp` is never called; the hooks are deploy, activate, deactivate'],
    ],
    [
      'hooks and methods that are not functions',
      'export default {\n  name: "n",\n  hooks: { activate: 5, deactivate: "y", bogus: {} },\n  methods: { a: [], b() {}, c: -1 },\n}',
      [
        '3:12 `hooks.activate` is not a function, so it is never called',
        '3:25 `hooks.deactivate` is not a function, so it is never called',
        '3:42 `hooks.bogus` is never called; the hooks are deploy, activate, deactivate',
        '4:14 `methods.a` is not a function, so it cannot be called',
        '4:29 `methods.c` is not a function, so it cannot be called',
      ],
    ],
    [
      'methods that are not an object',
      'export default {\n  name: "n",\n  methods: "y",\n}',
      ['3:3 `methods` is not an object, so there are no methods'],
    ],
    [
      'a misspelt type',
      'export default {\n  name: "n",\n  props: { a: { type: "strng" }, b: "$.interface.htp" },\n}',
      [
        '3:23 `props.a` has the unknown type "strng"; did you mean "string"?',
        '3:37 `props.b` has the unknown type "$.interface.htp"; did you mean "$.interface.http"?',
      ],
    ],
    [
      'a type with another name',
      'export default { name: "n", props: { a: { type: "number" } } }',
      ['1:49 `props.a` has the unknown type "number"; did you mean "integer"?'],
    ],
    [
      'a type that no other resembles',
      'export default { name: "n", props: { a: { type: "date" } } }',
      ['1:49 `props.a` has the unknown type "date", so its values are not checked'],
    ],
    [
      'a type that is named like a member of every object',
      'export default { name: "n", props: { a: { type: "valueOf" } } }',
      ['1:49 `props.a` has the unknown type "valueOf", so its values are not checked'],
    ],
    [
      'defaults of another type than their prop',
      'export default {\n  name: "n",\n  props: {\n    a: { type: "integer", default: "5" },\n    b: { type: "string[]", default: 5 },\n    c: { type: "integer[]", default: [1, 2.5] },\n    d: { type: "string", default: -1 },\n    e: { type: "object", default: [] },\n    f: { type: "boolean", default: `true` },\n  },\n}',
      [
        '4:36 `props.a` has the type "integer", but its default has another type',
        '5:37 `props.b` has the type "string[]", but its default has another type',
        '6:38 `props.c` has the type "integer[]", but its default has another type',
        '7:35 `props.d` has the type "string", but its default has another type',
        '8:35 `props.e` has the type "object", but its default has another type',
        '9:36 `props.f` has the type "boolean", but its default has another type',
      ],
    ],
    [
      'a response on an interface that allows none',
      'export default {\n  name: "n",\n  props: { http: "$.interface.http", b: { type: "$.interface.http", customResponse: false } },\n  run() {\n    this.http.respond({});\n    () => this["b"]?.respond({});\n  },\n}',
      [
        '5:5 `this.http.respond` throws, because `props.http` does not have `customResponse: true`',
        '6:11 `this.b.respond` throws, because `props.b` does not have `customResponse: true`',
      ],
    ],
    [
      'misspelt members',
      'export default {\n  name: "n",\n  hook: {},\n  runn() {},\n}',
      [
        '3:3 `hook` is not a member of a component, so it has no effect; did you mean `hooks`?',
        '4:3 `runn` is not a member of a component, so it has no effect; did you mean `run`?',
      ],
    ],
    [
      'an interface that sources cannot have',
      'export default { name: "n", props: { a: "$.interface.apphook" } }',
      ['1:41 `props.a`: no source can be created with $.interface.apphook; use $.interface.http or $.interface.timer'],
    ],
    [
      'CommonJS',
      'const c = { name: "n", hook: {} };\nmodule.exports = c;',
      ['1:24 `hook` is not a member of a component, so it has no effect; did you mean `hooks`?'],
    ],
    [
      'TypeScript',
      'type A = { a: string };\nexport default defineSource({\n  name: "n" as string,\n  runn(this: A): void {},\n});',
      ['4:3 `runn` is not a member of a component, so it has no effect; did you mean `run`?'],
    ],
  ])('say what is a mistake: %s', async (_, code, expected) => {
    expect(await warnings(code)).toEqual(expected);
  });

  it.each([
    [
      'every member and type that there is',
      'export default { key: "k", name: "n", version: "1", description: "d", type: "source", dedupe: "last", concurrency: 2, props: { a: "string[]", b: { type: "data_store" }, c: { type: "$.airtable.baseId" } }, hooks: { deploy() {}, activate() {}, deactivate() {} }, methods: { any() {} }, additionalProps() {}, sampleEmit: {}, run() {} }',
    ],
    [
      'responses on interfaces that may allow them, and other calls of that name',
      'const more = {}; export default { name: "n", props: { a: { type: "$.interface.http", customResponse: true }, b: { type: "$.interface.http", ...more }, c: { type: "$.interface.http", customResponse: more.yes }, d: "string", http: "$.interface.http" }, run() { for (const each of [this.a, this.b, this.c, this.d]) each.respond(); this.a.respond(); this.b.respond(); this.c.respond(); this.d.respond(); this.http.other(); this.x.http.respond(); } }',
    ],
    [
      'defaults of the type of their prop, and those that are null or computed',
      'const n = 5; export default { name: "n", props: { a: { type: "integer", default: -5 }, b: { type: "string[]", default: ["x", n] }, c: { type: "object", default: {} }, d: { type: "boolean", default: !1 }, e: { type: "string", default: n }, f: { type: "string", options: [1, 2], default: 1 }, g: { type: "string", default: null }, h: { type: "any", default: 1 }, i: { type: "$.interface.timer", default: { intervalSeconds: 60 } }, j: { type: "string[]", default: "a".split() } } }',
    ],
    [
      'hooks and methods that are null or computed',
      'const f = () => {}; export default { name: "n", hooks: { deploy: f, activate: null, deactivate: undefined }, methods: { a: f, b: f.bind(null), c: async () => {}, d: null } }',
    ],
    ['methods that are null', 'export default { name: "n", methods: null }'],
    ['members that are far from any', 'export default { name: "n", author: "me", license: "MIT", run() {} }'],
    ['what is computed', 'const hooks = { deply() {} }; export default { name: "n", ...{ hook: 1 }, ["runn"]() {}, hooks }'],
  ])('do not concern %s', async (_, code) => {
    expect(await warnings(code)).toEqual([]);
  });

  it('do not come from code that is nested too deeply to be read', async () => {
    const deep = `export default { name: "n", x: ${'['.repeat(20_000)}${']'.repeat(20_000)} }`;
    const rejection = await sandbox.inspect(componentOf(deep)).catch((error: Error) => error.name);
    expect(['ComponentRejected', undefined]).toContain(typeof rejection === 'string' ? rejection : rejection.warnings);
  });
});
