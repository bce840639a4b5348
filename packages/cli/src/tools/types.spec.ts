import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import type { Session } from '../session/session.js';
import { init } from './init.js';
import { PROJECT } from './types.js';

const folder = mkdtempSync(join(tmpdir(), 'sluice-types-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The problems of a component that an editor shows: `line: message`. */
function problems(name: string, code: string): string[] {
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...PROJECT, files: ['sluice-env.d.ts', name] }));
  writeFileSync(join(folder, 'sluice-env.d.ts'), readFileSync('packages/cli/types/sluice-env.d.ts'));
  writeFileSync(join(folder, name), code);
  const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), (path) => readFileSync(path, 'utf8'));
  const { fileNames, options, errors } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
  return [...errors, ...ts.getPreEmitDiagnostics(ts.createProgram(fileNames, options))].map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n').split('\n').at(-1)!.trim()}`;
  });
}

/** The compiler reads its libraries each time. */
const LONG_MS = 60_000;

const GOOD = `
import { createHmac } from 'node:crypto';
import Parser from 'rss-parser';
const shop = defineApp({ type: 'app', app: 'shop', methods: { async products() { return [{ id: 1, name: this.$auth.name }]; } } });
export default defineSource({
  key: 'shop', name: 'Shop', version: '1.0.0', dedupe: 'unique', concurrency: 1, retries: true,
  props: {
    db: '$.service.db',
    http: { type: '$.interface.http', customResponse: true },
    url: { type: 'string', label: 'URL', secret: true },
    limit: { type: 'integer', default: 10 },
    tags: { type: 'string[]', optional: true },
    shop,
    other: { propDefinition: [shop, 'other'] },
  },
  methods: {
    idOf(product) { return \`\${this.url}-\${product.id}\`; },
    async seen() { return this.db.get('seen') ?? {}; },
  },
  hooks: {
    async deploy() { for (const product of await this.shop.products()) this.$emit(product, { id: this.idOf(product), ts: new Date() }); },
    activate() { console.log(createHmac, Parser, this.http.endpoint.length, this.shop.$auth.key); },
    deactivate() {},
  },
  async run({ body, headers, bodyRaw }) {
    const seen = await this.seen();
    if (this.tags?.includes(headers['x-tag']) && this.limit.toFixed() !== bodyRaw) this.db.set('seen', { ...seen, [this.idOf(body)]: true });
    this.$emit(body, { id: body.id, name: 'orders', summary: 'an order', delivery_ts: Date.now() });
    this.http.respond({ status: 200, headers: { a: 'b' }, body: { ok: true } });
  },
});
`;

describe('the types of components', () => {
  it.each([
    ['JavaScript', 'good.mjs', GOOD],
    ['TypeScript', 'good.ts', GOOD.replace('idOf(product)', 'idOf(product: { id: number }): string')],
    [
      'a timer',
      'timer.mjs',
      "export default defineComponent({ name: 'n', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 60 } } }, run({ timestamp }) { this.$emit(timestamp.toFixed() + this.timer.cron); } });",
    ],
    [
      'several interfaces',
      'both.mjs',
      "export default defineSource({ name: 'n', props: { a: '$.interface.timer', b: '$.interface.http' }, run(event) { this.$emit(event.anything); } });",
    ],
  ])('accept a right component: %s', (_, name, code) => expect(problems(name, code)).toEqual([]), LONG_MS);

  it.each(['timer', 'http'].flatMap((template) => ['mjs', 'ts'].map((ending) => [template, ending] as const)))(
    'accept the template %s in a file .%s',
    (template, ending) => {
      const file = join(folder, `it's-${template}.${ending}`);
      init({ note: () => {} } as unknown as Session, file, { template });
      expect(problems(basename(file), readFileSync(file, 'utf8'))).toEqual([]);
    },
    LONG_MS,
  );

  it.each([
    ['a misspelt member', "defineSource({ name: 'n', runn() {} })", /'runn' does not exist/],
    ['a misspelt hook', "defineSource({ name: 'n', hooks: { deply() {} } })", /'deply' does not exist/],
    ['an unknown type of a prop', "defineSource({ name: 'n', props: { a: { type: 'strng' } } })", /"strng"|'strng'/],
    ['an unknown type of a prop, alone', "defineSource({ name: 'n', props: { a: '$.interface.htp' } })", /htp/],
    ['an unknown strategy', "defineSource({ name: 'n', dedupe: 'uniq' })", /"uniq"/],
    [
      'a prop that is not defined',
      "defineSource({ name: 'n', props: { url: 'string' }, run() { this.$emit(this.ulr); } })",
      /'ulr' does not exist/,
    ],
    [
      'a value of another type',
      "defineSource({ name: 'n', props: { n: 'integer' }, run() { this.n.toUpperCase(); } })",
      /'toUpperCase' does not exist/,
    ],
    [
      'a prop that may be absent',
      "defineSource({ name: 'n', props: { n: { type: 'integer', optional: true } }, run() { this.n.toFixed(); } })",
      /possibly 'undefined'/,
    ],
    ['metadata that does not exist', "defineSource({ name: 'n', run() { this.$emit(1, { sumary: 'x' }); } })", /'sumary' does not exist/],
    [
      'a method of the db that does not exist',
      "defineSource({ name: 'n', props: { db: '$.service.db' }, run() { this.db.delete('x'); } })",
      /'delete' does not exist/,
    ],
    [
      'a response without customResponse',
      "defineSource({ name: 'n', props: { http: '$.interface.http' }, run() { this.http.respond({}); } })",
      /'respond' does not exist/,
    ],
    [
      'a field that a request does not have',
      "defineSource({ name: 'n', props: { http: '$.interface.http' }, run({ bodyy }) {} })",
      /'bodyy' does not exist/,
    ],
    [
      'a method that does not exist',
      "defineSource({ name: 'n', methods: { one() { return 1; } }, run() { this.two(); } })",
      /'two' does not exist/,
    ],
    ['a missing name', 'defineSource({ run() {} })', /'name' is missing/],
  ])(
    'report %s',
    (_, code, message) => {
      const found = problems('bad.mjs', `// a comment\nexport default ${code};`);
      expect(found).toEqual([expect.stringMatching(message)]);
      expect(found[0]).toMatch(/^2: /);
    },
    LONG_MS,
  );
});
