import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { runInNewContext } from 'node:vm';
import { jobOf, startTestSandbox } from './sandbox-for-tests.js';
import type { HttpReply, RunJob, RunOutcome, Sandbox } from './sandbox.js';

const limits = {
  cpuMs: 1500,
  silenceCpuMs: 800,
  emits: 20,
  eventBytes: 10_000,
  emittedBytes: 50_000,
  eventDepth: 20,
  logs: 5,
  logBytes: 1000,
  dbBytes: 5000,
  respondBytes: 5000,
};

describe('running a component', () => {
  let sandbox: Sandbox;
  beforeAll(async () => (sandbox = await startTestSandbox({ blanks: 2, limits })));
  afterAll(() => sandbox.close());

  /** A component whose `run` is this body, by default with a db and an endpoint. */
  const run = (body: string, job: Partial<RunJob> = {}, members = '') => {
    const props =
      'props: { db: "$.service.db", http: { type: "$.interface.http", customResponse: true }, timer: { type: "$.interface.timer", default: { intervalSeconds: 60 } } },';
    return sandbox.run(
      jobOf(`export default { name: "n", ${members.includes('props:') ? '' : props} ${members} async run(event) {\n${body}\n} }`, {
        ...job,
      }),
    );
  };
  const events = ({ emits }: RunOutcome) => emits.map(({ event }) => JSON.parse(event) as unknown);

  it('returns what was emitted, logged and stored', async () => {
    const outcome = await run(
      'this.db.set("n", this.db.get("n") + 1); this.$emit({ n: this.db.get("n") }); console.log("n is", this.db.get("n"))',
      { db: { n: '1' } },
    );
    expect(outcome).toEqual({
      status: 'ok',
      error: null,
      emits: [{ event: '{"n":2}' }],
      logs: [{ level: 'log', ts: expect.any(Number), message: 'n is 2' }],
      db: { n: '2' },
      wallMs: expect.any(Number),
      cpuMs: expect.any(Number),
      mainMs: expect.any(Number),
      responded: false,
    });
  });

  it('costs the main thread the time to send its data and to read its output', async () => {
    // the least of several: a garbage collection can be part of one
    const silent: number[] = [];
    for (let n = 0; n < 5; n++) silent.push((await run('')).mainMs);
    const event = JSON.stringify('"'.repeat(500_000));
    expect((await run('', { event })).mainMs).toBeGreaterThan(Math.min(...silent));
    expect((await run('for (let n = 0; n < 20; n++) this.$emit("\\u0001".repeat(400))')).mainMs).toBeGreaterThan(0);
  });

  it.each([
    ['application/json', '{"a":[1]}', '{"a":[1]}', { a: [1] }],
    ['application/x-www-form-urlencoded', 'a=1&b=2', 'a=1&b=2', { a: '1', b: '2' }],
    ['text/plain', 'ä', 'ä', 'ä'],
    [
      'multipart/form-data; boundary=X',
      '--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--',
      expect.any(String),
      { a: '1' },
    ],
  ])('gets the body of a request that comes beside its event: %s', async (type, text, bodyRaw, body) => {
    const head = { method: 'POST', path: '/', query: {}, headers: { 'content-type': type } };
    const httpBody = Buffer.from(text).toString('base64');
    const outcome = await run('this.$emit(event)', { event: JSON.stringify(head), httpBody });
    expect(events(outcome)).toEqual([{ ...head, bodyRaw, body }]);
  });

  describe('lists the options of a prop', () => {
    const APP = `const app = { type: 'app', app: 'shop', methods: { list(n) { return [n, this.$auth?.token ?? 'nobody'] } },
      propDefinitions: { item: { type: 'string', async options({ page, kind }) { return this.list(kind + page) } } } };`;
    const CODE = `${APP} export default { name: 'n', props: { app, region: 'string', db: '$.service.db',
      mine: { type: 'string', async options(call) { return { options: [{ label: this.region, value: 1 }, null, call.query, undefined], context: { call } } } },
      theirs: { propDefinition: [app, 'item', (c) => ({ kind: c.region })] },
      thrown: { type: 'string', options() { throw new Error('no such shop') } },
      odd: { type: 'string', options() { return 5 } },
      loud: { type: 'string', options() { this.$emit('x'); return [] } },
      busy: { type: 'string', options() { for (let n = 0; n < 600; n++) console.log(n); this.db.set('n', 1); return [this.db.get('n')] } },
      empty: { type: 'string', options() { return ['x', { z: 1 }] } },
      large: { type: 'string', options() { return ['x'.repeat(20_000)] } } } };`;
    const options = (prop: string, more: object = {}) =>
      sandbox.run(
        jobOf(CODE, {
          method: 'options',
          props: { region: 'north', app: { $auth: { token: 't' } } },
          event: JSON.stringify({ prop, query: null, page: 0, prev_context: null, ...more }),
        }),
      );
    const listed = async (prop: string, more?: object) => events(await options(prop, more)).at(-1);

    it('options() gets the values of the other props, the query and the context', async () => {
      expect(await listed('mine', { query: 'q', page: 2, prev_context: { next: 7 } })).toEqual({
        options: [
          { label: 'north', value: 1 },
          { label: 'q', value: 'q' },
        ],
        context: { call: { query: 'q', page: 2, prevContext: { next: 7 } } },
      });
    });
    it('the options of a prop from an app are listed with its credentials and what depends on other props', async () => {
      expect(await listed('theirs', { page: 3 })).toEqual({
        options: [
          { label: 'north3', value: 'north3' },
          { label: 't', value: 't' },
        ],
        context: null,
      });
    });
    it.each([
      ['thrown', 'no such shop'],
      ['odd', 'must return an array'],
      ['empty', 'must be a value, or an object with a `value` or a `label`'],
      ['large', 'more than 10000 bytes'],
    ])('and reports what is wrong with %s', async (prop, message) => {
      expect(await options(prop)).toMatchObject({ status: 'threw', error: { message: expect.stringContaining(message) } });
    });
    it('whatever else it emits', async () => {
      expect(await listed('loud')).toEqual({ options: [], context: null });
    });
    it('without what it logs and stores meanwhile', async () => {
      const outcome = await options('busy');
      expect(outcome).toMatchObject({ status: 'ok', logs: [], db: {} });
      expect(events(outcome)).toEqual([{ options: [{ label: '1', value: 1 }], context: null }]);
    });
  });

  it('gives run the event', async () => {
    expect(events(await run('this.$emit(event)', { event: '{"a":[1]}' }))).toEqual([{ a: [1] }]);
    expect(events(await run('this.$emit(typeof event)'))).toEqual(['undefined']);
  });

  it('emits the event of a component without run', async () => {
    const code = 'export default { name: "n", props: { http: "$.interface.http" } }';
    expect((await sandbox.run(jobOf(code, { event: '{"method":"GET", "a":1}' }))).emits).toEqual([{ event: '{"method":"GET","a":1}' }]);
  });

  it.each([
    ['without run', 'export default { name: "n" }'],
    ['that emits it', 'export default { name: "n", run(event) { this.$emit(event) } }'],
  ])('emits a request with its body once, if it is too large, of a component %s', async (_, code) => {
    const body = 'x'.repeat(8000);
    const { emits, error } = await sandbox.run(jobOf(code, { event: JSON.stringify({ path: '/', bodyRaw: body, body }) }));
    expect({ emits, error }).toEqual({ emits: [{ event: JSON.stringify({ path: '/', body }) }], error: null });
  });

  describe('this', () => {
    it.each<[string, string, string, Partial<RunJob>, unknown[]]>([
      [
        'holds configured values before defaults',
        'this.$emit([this.a, this.b, this.c])',
        'props: { a: { type: "string", default: "A" }, b: { type: "string", default: "B" }, c: "string" },',
        { props: { a: 'x' } },
        [['x', 'B', null]],
      ],
      [
        'keeps false, 0 and empty text that were configured',
        'this.$emit([this.a, this.b, this.c])',
        'props: { a: { type: "boolean", default: true }, b: { type: "integer", default: 1 }, c: { type: "string", default: "C" } },',
        { props: { a: false, b: 0, c: '' } },
        [[false, 0, '']],
      ],
      [
        'takes the default if null was configured',
        'this.$emit([this.a, this.b, this.c])',
        'props: { a: { type: "string", default: "A" }, b: { type: "$.interface.timer", static: { cron: "* * * * *" } }, c: "any" },',
        { props: { a: null, b: null, c: null } },
        [['A', { cron: '* * * * *' }, null]],
      ],
      [
        'has the defaults of props that are named like members of every object',
        'this.$emit([this.constructor, this.toString])',
        'props: { constructor: { type: "string", default: "A" }, toString: { type: "integer", default: 4 } },',
        {},
        [['A', 4]],
      ],
      [
        'takes a default through propDefinition',
        'this.$emit(this.a)',
        'props: { a: { propDefinition: [{ type: "app", propDefinitions: { x: { type: "string", default: "X" } } }, "x"] } },',
        {},
        ['X'],
      ],
      [
        'takes a default that contains functions',
        'this.$emit(this.a.f())',
        'props: { a: { type: "any", default: { f: () => 1 } } },',
        {},
        [1],
      ],
      [
        'binds methods to one object',
        'this.x = 1; this.$emit(this.m())',
        'methods: { m() { return [this.x, this.other(), this.db.get("k")] }, other() { return this.x + 1 } },',
        { db: { k: '"v"' } },
        [[1, 2, 'v']],
      ],
      [
        'binds methods that are passed on',
        'this.x = 1; this.$emit([1, 2].map(this.add))',
        'methods: { add(n) { return n + this.x } },',
        {},
        [[2, 3]],
      ],
      [
        'binds apps and their credentials',
        'this.$emit([this.app.token(), this.app.$auth, this.none.$auth])',
        'props: { app: { type: "app", app: "x", methods: { token() { return this.prefix() + this.$auth.token }, prefix() { return "Bearer " } } }, none: { type: "app", app: "y" } },',
        { props: { app: { $auth: { token: 't' } } } },
        [['Bearer t', { token: 't' }, {}]],
      ],
      ['knows the endpoint', 'this.$emit(this.http.endpoint)', '', { endpoint: 'http://e/x' }, ['http://e/x']],
      ['knows the timer as configured', 'this.$emit(this.timer)', '', { props: { timer: { cron: '* * * * *' } } }, [{ cron: '* * * * *' }]],
      ['knows the timer by default', 'this.$emit(this.timer)', '', {}, [{ intervalSeconds: 60 }]],
      ['emits from a method', 'this.m()', 'methods: { m() { this.$emit(1) } },', {}, [1]],
      [
        'has the source id in the environment and nothing else',
        'this.$emit([process.env.PD_COMPONENT, Object.keys(process.env), process.env.PATH])',
        '',
        { sourceId: 'dc_1' },
        [['dc_1', ['PD_COMPONENT'], null]],
      ],
      [
        'has a home directory, which clients of services look up when they are created',
        'const os = await import("os"); this.$emit(os.homedir() === os.tmpdir())',
        '',
        {},
        [true],
      ],
    ])('%s', async (_, body, members, job, expected) => {
      const outcome = await run(body, job, members);
      expect(outcome.error).toBeNull();
      expect(events(outcome)).toEqual(expected);
    });
  });

  it.each([
    ['a value', 'b: { type: "any", default: { list: [] } }', 'this.b.list.push(1); this.$emit(this.b)'],
    ['an interface', 'b: { type: "$.interface.timer", static: { list: [] } }', 'this.b.list.push(1); this.$emit(this.b)'],
  ])('gives each run a new copy of the default of %s', async (_, prop, body) => {
    for (let n = 0; n < 2; n++) expect(events(await run(body, {}, `props: { ${prop} },`))).toEqual([{ list: [1] }]);
  });

  describe('hooks', () => {
    const code =
      'export default { name: "n", props: { db: "$.service.db" }, hooks: { async deploy() { this.$emit("deploy"); this.db.set("d", 1) }, activate() { this.help() } }, methods: { help() { this.$emit("activate") } }, run() {} }';

    it('run with the same this', async () => {
      expect(await sandbox.run(jobOf(code, { method: 'deploy' }))).toMatchObject({
        status: 'ok',
        emits: [{ event: '"deploy"' }],
        db: { d: '1' },
      });
      expect(await sandbox.run(jobOf(code, { method: 'activate' }))).toMatchObject({ status: 'ok', emits: [{ event: '"activate"' }] });
    });

    it('absent hooks do nothing', async () => {
      expect(await sandbox.run(jobOf(code, { method: 'deactivate' }))).toMatchObject({ status: 'ok', emits: [] });
    });
  });

  describe('db', () => {
    it.each([
      ['an absent key is undefined', 'this.$emit(typeof this.db.get("x"))', {}, ['undefined'], {}],
      [
        'what was set is a copy',
        'const o = { a: 1 }; this.db.set("o", o); o.a = 2; this.$emit(this.db.get("o"))',
        {},
        [{ a: 1 }],
        { o: '{"a":1}' },
      ],
      ['undefined removes', 'this.db.set("n", undefined); this.$emit(typeof this.db.get("n"))', { n: '1' }, ['undefined'], { n: null }],
      [
        'what JSON does not have removes nothing',
        'for (const value of [() => 1, Symbol("s"), { toJSON() {} }]) try { this.db.set("n", value) } catch (error) { this.$emit(error.message) }',
        { n: '1' },
        ['function', 'symbol', 'object'].map((type) => `db.set: a value of type ${type} is not JSON`),
        {},
      ],
      ['only the last change of a key comes back', 'for (let i = 0; i < 50_000; i++) this.db.set("a", i)', {}, [], { a: '49999' }],
      ['only changed keys come back', 'this.db.set("b", null)', { a: '1', b: '2' }, [], { b: 'null' }],
      [
        'keys have no special names',
        'this.db.set("__proto__", 1); this.$emit([this.db.get("__proto__"), typeof this.db.get("toString")])',
        {},
        [[1, 'undefined']],
        JSON.parse('{"__proto__":"1"}'),
      ],
    ])('%s', async (_, body, db, expected, changed) => {
      const outcome = await run(body, { db: db });
      expect(outcome.error).toBeNull();
      expect(events(outcome)).toEqual(expected);
      expect(JSON.stringify(outcome.db)).toBe(JSON.stringify(changed));
    });

    it.each([
      ['a BigInt', '10n', 'BigInt'],
      ['a cycle', 'cyclic', 'circular'],
    ])('reports a value that cannot be stored even if the error is caught: %s', async (_, value, message) => {
      const outcome = await run(`const cyclic = {}; cyclic.cyclic = cyclic; try { this.db.set("a", ${value}) } catch {}`);
      expect(outcome).toMatchObject({ status: 'ok', db: {}, refused: [{ name: 'TypeError', message: expect.stringContaining(message) }] });
    });

    it('over the limit it throws, and the error is reported even if it is caught', async () => {
      const outcome = await run(
        'this.db.set("a", "x".repeat(4000)); try { this.db.set("b", "x".repeat(4000)) } catch {} this.db.set("a", 1)',
      );
      expect(outcome).toMatchObject({
        status: 'ok',
        error: null,
        refused: [{ name: 'RangeError', message: expect.stringContaining('the limit is 5000') }],
        db: { a: '1' },
      });
    });
  });

  it('lets a db that overlapping runs have made too large shrink, but not grow', async () => {
    const large = JSON.stringify('x'.repeat(4000));
    const outcome = await run('this.db.set("a", "y".repeat(3900)); try { this.db.set("b", "z".repeat(4001)) } catch {}', {
      db: { a: large, b: large },
    });
    expect(outcome).toMatchObject({
      status: 'ok',
      db: { a: JSON.stringify('y'.repeat(3900)) },
      refused: [{ name: 'RangeError', message: 'db.set: with "b" the source\'s db would have 7907 bytes; the limit is 5000' }],
    });
  });

  it('takes changes of the db in any order that are within the limit together', async () => {
    const large = (letter: string) => JSON.stringify(letter.repeat(4000));
    // the first ones are sent at once, the others together
    const outcome = await run(
      'for (let n = 0; n < 20; n++) this.db.set("n", n); this.db.set("a", 1); this.db.set("b", undefined); this.db.set("a", "a".repeat(4000))',
      { db: { b: large('b') } },
    );
    expect(outcome).toMatchObject({ status: 'ok', db: { n: '19', a: large('a'), b: null } });
  });

  it('keeps at most as many keys in the db as the limit allows, and lets one that has more shrink', async () => {
    const small = await startTestSandbox({ limits: { dbKeys: 3 } });
    try {
      const body = `const set = (key, value) => { try { this.db.set(key, value) } catch {} };
        set("new", 1); set("c", 2); set("b"); set("newer", 1); set("c"); set("newest", 1)`;
      const code = `export default { name: 'n', props: { db: '$.service.db' }, run() { ${body} } }`;
      const outcome = await small.run(jobOf(code, { db: { a: '1', b: '1', c: '1', d: '1' } }));
      const refused = ['"new" the source\'s db would have 5 keys', '"newer" the source\'s db would have 4 keys'];
      expect(outcome).toMatchObject({
        status: 'ok',
        db: { b: null, c: null, newest: '1' },
        refused: refused.map((what) => ({ name: 'RangeError', message: `db.set: with ${what}; the limit is 3` })),
      });
    } finally {
      await small.close();
    }
  });

  it('changes at most ten thousand keys of the db', async () => {
    const outcome = await run('for (let i = 0; i < 400_000; i++) this.db.set("k" + i, undefined)', { db: { k0: '1' } });
    expect(outcome).toMatchObject({ status: 'threw', error: { message: 'db.set: more than 10000 keys changed in one run' } });
    expect(Object.keys(outcome.db)).toHaveLength(10_000);
  });

  it.each([
    ['a NUL character', '"k\\0"', 'a NUL character or an unpaired surrogate'],
    ['half a character', '"😀".slice(0, 1)', 'a NUL character or an unpaired surrogate'],
    ['more than 1024 bytes', '"ä".repeat(513)', 'the key has 1026 bytes; the limit is 1024'],
  ])('refuses a key of the db with %s, and keeps the rest of the run', async (_, key, message) => {
    const outcome = await run(`this.$emit(1); this.db.set("ä".repeat(512), 1); this.db.set(${key}, 1)`);
    expect(outcome).toMatchObject({ status: 'threw', error: { name: 'RangeError', message: expect.stringContaining(message) } });
    expect(outcome).toMatchObject({ emits: [{ event: '1' }], db: { ['ä'.repeat(512)]: '1' } });
  });

  it('removes a key of the db that is longer than a new one may be', async () => {
    const key = 'k'.repeat(1500);
    expect(await run('this.db.set("k".repeat(1500), undefined)', { db: { [key]: '1' } })).toMatchObject({
      status: 'ok',
      db: { [key]: null },
    });
  });

  describe('$emit', () => {
    const ts = Date.UTC(2024, 0, 2);
    it.each([
      ['nothing more', '1', {}],
      ['an undefined second argument', '1, undefined', {}],
      ['a number as the id', '1, { id: 7 }', { id: '7' }],
      ['a text as the id', '1, { id: "a" }', { id: 'a' }],
      ['an object as the id', '1, { id: { a: 1 } }', { id: '{"a":1}' }],
      ['null everywhere', '1, { id: null, name: null, summary: null, ts: null }', {}],
      ['a stream and a summary', '1, { name: "s", summary: 5 }', { name: 's', summary: '5' }],
      ['ts in milliseconds', `1, { ts: ${ts} }`, { ts }],
      ['ts in seconds', `1, { ts: ${ts / 1000} }`, { ts }],
      ['ts as a text of digits', `1, { ts: "${ts}" }`, { ts }],
      ['ts as a Date', `1, { ts: new Date(${ts}) }`, { ts }],
      ['ts as ISO text', '1, { ts: "2024-01-02T00:00:00Z" }', { ts }],
      ['ts as an RFC 2822 text', '1, { ts: "Tue, 02 Jan 2024 00:00:00 GMT" }', { ts }],
      ['ts as a BigInt', `1, { ts: ${ts}n }`, { ts }],
      ['ts as an object that has the value of a time', `1, { ts: { valueOf: () => ${ts} } }`, { ts }],
      ...['new Date("x")', 'false', 'true', '[]', '[5]', '{}', 'Object.create(null)', '" "', 'Symbol()'].map(
        (value): [string, string, object] => [`ts that is not a time: ${value}`, `1, { ts: ${value} }`, {}],
      ),
      ['ts in nanoseconds', '1, { ts: 1700000000000000000 }', {}],
      ['ts beyond all', '1, { ts: -1e300 }', {}],
      ['delivery_ts', `1, { delivery_ts: ${ts} }`, { deliveryTs: ts }],
    ])('an event with %s is emitted', async (_, args, meta) => {
      expect(await run(`this.$emit(${args})`)).toMatchObject({ status: 'ok', emits: [{ event: '1', ...meta }] });
      expect((await run(`this.$emit(${args})`)).emits[0]).toEqual({ event: '1', ...meta });
    });

    it.each([
      ['undefined', 'undefined', 'null'],
      ['a text', '"a"', '"a"'],
      ['a Date', 'new Date(0)', '"1970-01-01T00:00:00.000Z"'],
      ['null', 'null', 'null'],
    ])('%s is emitted as JSON', async (_, value, text) => {
      expect((await run(`this.$emit(${value})`)).emits).toEqual([{ event: text }]);
    });

    it.each([
      ['too large', 'this.$emit("x".repeat(10_000))', 'the event has 10002 bytes of JSON; the limit is 10000'],
      ['larger in bytes than in characters', 'this.$emit("ä".repeat(5_000))', 'the event has 10002 bytes'],
      ['no JSON', 'this.$emit(() => 1)', 'a value of type function is not JSON'],
      ['circular', 'const o = {}; o.o = o; this.$emit(o)', 'circular'],
      ['a BigInt', 'this.$emit(1n)', 'BigInt'],
      ['too deep', 'let o = 1; for (let i = 0; i < 30; i++) o = [o]; this.$emit(o)', 'nested deeper than 20 levels'],
      ['one too many', 'for (let i = 0; i < 25; i++) this.$emit(i)', 'more than 20 events in one run'],
      [
        'too much in all',
        'for (let i = 0; i < 9; i++) this.$emit("x".repeat(9000))',
        'more than 50000 bytes of events, ids and summaries in one run',
      ],
      ['with a stream name too long', 'this.$emit(1, { name: "x".repeat(129) })', 'name has 129 characters'],
      ['with a stream name of too many emoji', 'this.$emit(1, { name: "😀".repeat(129) })', 'name has 129 characters'],
      ...['$foo', '$', '$in', '$ERRORS', '*', 'a\0b', '\ud800'].map((name) => [
        `on the stream ${JSON.stringify(name)}`,
        `this.$emit(1, { name: ${JSON.stringify(name)} })`,
        '$emit: name m',
      ]),
      ['in two years', 'this.$emit(1, { delivery_ts: Date.now() + 2 * 366 * 864e5 })', 'more than a year ahead'],
      ...['"tomorrow"', 'NaN', 'Infinity', '-1', 'new Date(NaN)', '{}', 'false', 'true', '[]', '" "'].map((value) => [
        `delivered at ${value}`,
        `this.$emit(1, { delivery_ts: ${value} })`,
        'delivery_ts must be a Date',
      ]),
      ['with a text for the options', 'this.$emit(1, "a")', 'the second argument must be an object'],
    ])('emitting an event that is %s is an error', async (_, body, message) => {
      expect(await run(body)).toMatchObject({ status: 'threw', error: { message: expect.stringContaining(message) } });
    });

    it('a refused emit is reported even if the component caught the error, and the run does not fail', async () => {
      const outcome = await run('try { this.$emit("x".repeat(10_000)) } catch {} this.$emit(1)');
      expect(outcome).toMatchObject({ status: 'ok', error: null, refused: [{ name: 'RangeError' }], emits: [{ event: '1' }] });
    });

    it('a refused emit is reported once if the component did not catch the error', async () => {
      const outcome = await run('try { this.$emit(1n) } catch {} this.$emit("x".repeat(10_000))');
      expect(outcome).toMatchObject({ status: 'threw', error: { name: 'RangeError' }, refused: [{ name: 'TypeError' }] });
      expect((await run('this.$emit(1n)')).refused).toEqual([]);
    });

    it.each([
      ['BadStreamName', '{ name: "$in" }'],
      ['DeliveryTooLate', '{ delivery_ts: Date.now() + 2 * 366 * 864e5 }'],
    ])('an emit that was refused as %s is reported once under this code', async (code, meta) => {
      const uncaught = await run(`this.$emit(1, ${meta})`);
      expect(uncaught).toMatchObject({ status: 'threw', error: { name: 'RangeError', code }, emits: [], refused: [] });
      const caught = await run(
        `try { this.$emit(1, ${meta}) } catch {} for (const name of ['$errors', '$logs', 'a*', '😀'.repeat(128)]) this.$emit(2, { name })`,
      );
      expect(caught).toMatchObject({ status: 'ok', error: null, refused: [{ name: 'RangeError', code }] });
      expect([caught.refused?.length, caught.emits.map(({ name }) => name)]).toEqual([1, ['$errors', '$logs', 'a*', '😀'.repeat(128)]]);
    });

    it('refuses the events that are too many if the JSON of an event emits others', async () => {
      const nested = 'let n = 0; const value = { toJSON: () => { if (n++ < 3) try { this.$emit(value) } catch {} return n } };';
      const outcome = await run(`for (let i = 0; i < 18; i++) this.$emit(i); ${nested} try { this.$emit(value) } catch {}`);
      expect(outcome).toMatchObject({ status: 'ok', refused: Array(2).fill({ message: '$emit: more than 20 events in one run' }) });
      expect(outcome.emits).toHaveLength(20);
    });

    it('an emit that was refused a thousand times is reported ten times and counted', async () => {
      const { status, refused } = await run('for (let n = 0; n < 1000; n++) try { this.$emit(1n) } catch {}');
      expect([status, refused?.length, refused?.at(-1)?.message]).toEqual(['ok', 11, '990 more calls were refused']);
    });

    it('whose JSON throws nothing that can be described is reported, too', async () => {
      const outcome = await run('try { this.$emit({ toJSON() { throw null } }) } catch {}');
      expect(outcome).toMatchObject({ status: 'ok', refused: [{ message: 'null' }] });
    });

    it.each([
      ['an emit', 'setTimeout(() => this.$emit(1), 10)', '$emit after the run has ended'],
      ['a throw', 'setTimeout(() => { throw new Error("late") }, 10); setTimeout(() => { throw new Error("later") }, 20)', 'late'],
      ['a promise', '(async () => { await new Promise((r) => setTimeout(r, 10)); throw new Error("late") })()', 'late'],
    ])('after the end of the run: %s is reported separately, once', async (_, body, message) => {
      const lateErrors: string[] = [];
      const outcome = await run(body, { onLateError: (error) => lateErrors.push(error.message) });
      expect(outcome).toMatchObject({ status: 'ok', emits: [] });
      await run('await new Promise((r) => setTimeout(r, 100))');
      expect(lateErrors).toEqual([message]);
    });

    it('after the end of the run: thousands of errors disturb no other run of the process', async () => {
      const job = { accountId: 'u_throws' };
      await run(
        'const throwing = setInterval(() => { for (let n = 0; n < 100; n++) queueMicrotask(() => { throw new Error("x") }) }, 1)',
        job,
      );
      const seen = 'this.$emit(globalThis.starts = (globalThis.starts ?? 0) + 1);';
      const outcome = await run(`${seen} await new Promise((r) => setTimeout(r, 1500))`, { ...job, sourceId: 'dc_2' });
      expect([outcome.status, ...events(outcome)]).toEqual(['ok', 1]);
      expect(events(await run(seen, { ...job, sourceId: 'dc_2' }))).toEqual([2]);
    });

    it('keeps many emits in order', async () => {
      const outcome = await run(
        'for (let i = 0; i < 20; i++) { this.$emit(i); if (i % 3 === 0) await new Promise((r) => setTimeout(r, 1)) }',
      );
      expect(events(outcome)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    });
  });

  describe('console', () => {
    it.each([
      ['an error', 'console.error(error)', 'RangeError: D\n    at Object.run (component.js:8:17)'],
      ['its stack', 'console.log(error.stack)', 'RangeError: D\n    at Object.run (component.js:8:17)'],
      ['a format', 'console.log("%o %s", 1, error)', '1 RangeError: D\n    at Object.run (component.js:8:17)'],
      [
        'an error with members',
        'console.log(Object.assign(error, { code: 1 }))',
        'RangeError: D\n    at Object.run (component.js:8:17) {\n  code: 1\n}',
      ],
      [
        'an object with an error',
        'console.log({ error, b: 1 })',
        '{\n  error: RangeError: D\n      at Object.run (component.js:8:17),\n  b: 1\n}',
      ],
      [
        'an error of Node',
        'try { new URL("x") } catch (e) { console.log(e.stack) }',
        'TypeError: Invalid URL\n    at Object.run (component.js:9:11)',
      ],
    ])('shows %s with the author’s lines and no others', async (_, print, expected) => {
      const code = `enum A {\n  B,\n  C,\n  D,\n}\nexport default { name: "n",\n  run() {\n  const error = new RangeError(A[A.D]);\n    ${print};\n  } }`;
      const { logs, error } = await sandbox.run(jobOf(code));
      expect(error).toBeNull();
      expect(logs[0]!.message.replaceAll(/component:\/\/\/\w+\//g, '')).toBe(expected);
    });

    it('is one line per call, with its level', async () => {
      const { logs } = await run(
        'console.log("a", 1, { b: 2 }); console.error(new Error("e").message); console.warn("%s is %d", "x", 5); console.info([1]); console.debug()',
      );
      expect(logs.map(({ level, message, args }) => [level, message, args && JSON.parse(args)])).toEqual([
        ['log', 'a 1 { b: 2 }', ['a', 1, { b: 2 }]],
        ['error', 'e', undefined],
        ['warn', 'x is 5', undefined],
        ['info', '[ 1 ]', [[1]]],
        ['debug', '', undefined],
      ]);
      expect(Math.abs(logs[0]!.ts - Date.now())).toBeLessThan(60_000);
    });

    it.each([
      ['trace', 'console.trace("a")', [['trace', 'a']]],
      ['dir, without its options', 'console.dir({ a: 1 }, { depth: 0 })', [['log', '{ a: 1 }']]],
      ['dirxml', 'console.dirxml("a", 1)', [['log', 'a 1']]],
      ['table', 'console.table([1], ["a"])', [['log', '[ 1 ]']]],
      [
        'assert',
        'console.assert(true, "a"); console.assert(1 > 2, "b"); console.assert()',
        [
          ['error', 'Assertion failed: b'],
          ['error', 'Assertion failed:'],
        ],
      ],
      [
        'count',
        'console.count(); console.count("a%d"); console.count(); console.countReset(); console.count()',
        [
          ['log', 'default: 1'],
          ['log', 'a%d: 1'],
          ['log', 'default: 2'],
          ['log', 'default: 1'],
        ],
      ],
      [
        'group',
        'console.group("a"); console.log("b"); console.groupCollapsed("c"); console.group(); console.groupEnd(); console.groupEnd()',
        [
          ['log', 'a'],
          ['log', 'b'],
          ['log', 'c'],
        ],
      ],
      [
        'time',
        'console.time(); console.timeLog(undefined, { b: 1 }); console.timeEnd(); console.timeEnd()',
        [
          ['log', 'default: 0ms { b: 1 }'],
          ['log', 'default: 0ms'],
          ['warn', 'No time was started with the label default'],
        ],
      ],
      [
        'Node’s module',
        '(await import("node:console")).log("a"); (await import("console")).default.warn("b")',
        [
          ['log', 'a'],
          ['warn', 'b'],
        ],
      ],
    ])('logs one line per call that prints: %s', async (_, body, expected) => {
      const { status, logs } = await run(body);
      expect(status).toBe('ok');
      expect(logs.map(({ level, message }) => [level, message.replace(/[\d.]+ms/, '0ms')])).toEqual(expected);
    });

    it('is also the module that a CommonJS component requires', async () => {
      const code =
        'const { Console, log } = require("console"); module.exports = { name: "n", run() { log("a"); require("node:console").error("b") } }';
      expect((await sandbox.run(jobOf(code))).logs.map(({ message }) => message)).toEqual(['a', 'b']);
    });

    describe('of a client that a variable keeps between runs', () => {
      const code = `const { EventEmitter } = require("events"); let client; module.exports = { name: "n", async run({ ms = 0 }) {
        if (!client) { client = new EventEmitter(); client.on("data", (text) => console.log(text)); setInterval(() => client.emit("data", "got"), 20); return }
        await new Promise((r) => setTimeout(r, ms));
      } }`;
      const runOf = (accountId: string, ms = 0, sourceId = 'dc_1') =>
        sandbox.run(jobOf(code, { accountId, sourceId, event: JSON.stringify({ ms }) }));

      it('belongs to the run in progress of the same source', async () => {
        await runOf('u_kept');
        const [{ logs }, other] = await Promise.all([
          runOf('u_kept', 500),
          run('await new Promise((r) => setTimeout(r, 500))', { accountId: 'u_kept' }),
        ]);
        expect(logs.length).toBeGreaterThan(0);
        expect(new Set(logs.map(({ message }) => message.replace(/^\d.*/, 'omitted')))).toEqual(new Set(['got', 'omitted']));
        expect(other.logs).toEqual([]);
      });

      it('belongs to none while several runs of the source are in progress', async () => {
        await runOf('u_kept_twice');
        const waiting = 'this.http.respond({}); await new Promise((r) => setTimeout(r, 600))';
        const { promise: running, resolve: onRespond } = Promise.withResolvers<unknown>();
        const long = run(waiting, { accountId: 'u_kept_twice', sourceId: 'dc_1', onRespond });
        await running;
        const { logs } = await runOf('u_kept_twice', 100);
        expect(logs).toEqual([]);
        expect((await long).status).toBe('ok');
      });
    });

    it('begins the counts of console.count at 1 in each run', async () => {
      for (let n = 0; n < 2; n++) expect((await run('console.count("a")')).logs).toMatchObject([{ message: 'a: 1' }]);
    });

    it('has its own clock, even if the component replaces Date', async () => {
      const outcome = await run('Date.now = () => 1e17; console.log("a")');
      expect(outcome).toMatchObject({ status: 'ok', logs: [{ message: 'a' }] });
      expect(new Date(outcome.logs[0]!.ts).getUTCFullYear()).toBeLessThan(3000);
    });

    it('states how many lines were omitted', async () => {
      const { status, logs } = await run('for (let i = 0; i < 12; i++) console.log(i)');
      expect({ status, messages: logs.map(({ message }) => message) }).toEqual({
        status: 'ok',
        messages: ['0', '1', '2', '3', '4', '7 more log lines of this run were omitted'],
      });
    });

    it('cuts a long line and shows that it did', async () => {
      const [line] = (await run('console.log("x".repeat(5000))')).logs;
      expect(line!.message).toMatch(/^x{895}…$/);
    });

    it.each([
      ['values in each other', '{ a: { b: [{ c: new Map([[{ d: 1 }, { e: { f: 1 } }]]) }] }, g: [[[[[[1]]]]]] }'],
      ['lists that are shorter than their names', 'Object.fromEntries(Array.from({ length: 60 }, (_, n) => ["k" + n, [1]]))'],
    ])('shows four levels of %s if the text is short enough', async (_, value) => {
      const [{ message } = {} as never] = (await run(`console.log(${value})`)).logs;
      expect(message).toBe(inspect(runInNewContext(`(${value})`), { depth: 4, breakLength: 120 }));
    });

    it('does not print parts of a large value that would be cut off', async () => {
      const outcome = await run(
        `let printed = 0;
         const part = { [Symbol.for("nodejs.util.inspect.custom")]() { printed++; return "part" } };
         console.log([part, Array(50).fill(Array(50).fill(Array(50).fill(part)))]);
         this.$emit(printed)`,
      );
      expect(outcome).toMatchObject({ error: null, logs: [{ message: expect.stringMatching(/^\[\n {2}part,\n {2}\[\n.*\[Array\]/s) }] });
      expect(events(outcome)[0]).toBeLessThan(100);
    });

    it('does not make the JSON of all arguments to find that they are too large', async () => {
      const outcome = await run(
        `let read = 0;
         console.log(Array(50_000).fill({ get a() { read++; return 1 } }));
         this.$emit(read)`,
      );
      expect(outcome).toMatchObject({ error: null, logs: [{ message: expect.stringMatching(/^\[\n {2}\{ a: \[Getter\] \},/) }] });
      expect(outcome.logs[0]!.args).toBeUndefined();
      expect(events(outcome)[0]).toBeLessThan(1000);
    });

    it.each([
      ['a line in which every character is escaped', 'console.log("\\n".repeat(5000))'],
      ['a line of characters with three bytes', 'console.log("ü€😀".repeat(500))'],
      ['a line with arguments that are shown twice', 'console.log("a", { b: "x".repeat(700) })'],
      ['a line with small arguments', 'console.log("a", { b: "x".repeat(350) })'],
    ])('has at most the bytes of the limit as an event: %s', async (_, body) => {
      const [{ level, ts, message, args } = {} as never] = (await run(body)).logs;
      const event = { level, ts: new Date(ts).toISOString(), message, ...(args !== undefined && { args: JSON.parse(args) }) };
      expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThanOrEqual(1000);
      expect(message.isWellFormed()).toBe(true);
      expect(args !== undefined).toBe(body.includes('350'));
    });

    it('survives values that cannot be printed', async () => {
      const outcome = await run(
        'console.log({ [Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("i") } }); console.log(1n, Symbol("s")); const c = {}; c.c = c; console.log(c)',
      );
      expect(outcome.logs.map(({ message }) => message)).toEqual(['[not printable]', '1n Symbol(s)', '<ref *1> { c: [Circular *1] }']);
    });

    it('survives proxies that throw at everything', async () => {
      const hostile = 'new Proxy({}, { getPrototypeOf() { throw new Error("p") } })';
      const outcome = await run(
        `const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); console.log(proxy); console.log("a", ${hostile})`,
      );
      expect(outcome.error).toBeNull();
      expect(outcome.logs.map(({ message }) => message)).toEqual(['<Revoked Proxy>', 'a {}']);
    });
  });

  describe('an error', () => {
    it('is shown with the author’s lines and no others', async () => {
      const { status, error } = await run('null.x');
      expect(status).toBe('threw');
      expect(error).toMatchObject({ name: 'TypeError', code: null, message: "Cannot read properties of null (reading 'x')" });
      expect(error!.stack).toMatch(/^TypeError: Cannot read .*\n\s+at Object\.run \(component:\/\/\/[0-9a-f]{16}\/component\.js:2:6\)$/);
    });

    it.each([
      ['many lines', 'line\\n', 40],
      ['many characters', 'x', 9000],
      ['the frames of other errors', '\\n    at f (x.js:1:1)', 40],
    ])('is shown with the author’s lines when its message has %s', async (_, text, count) => {
      const { error } = await run(`throw new Error(${JSON.stringify(text).replace('\\\\', '\\')}.repeat(${count}))`);
      expect(error!.stack).toMatch(/\n\s+at Object\.run \(component:\/\/\/\w+\/component\.js:2:7\)$/);
    });

    it.each([
      ['a request that fails', 'await fetch("http://127.0.0.1:9/")'],
      ['a request that fails and is awaited later', 'const p = fetch("http://127.0.0.1:9/"); await null; await p'],
      ['a request that is ended by a time limit', 'await fetch("http://127.0.0.1:9/", { signal: AbortSignal.timeout(0) })'],
      ['an invalid URL', 'await fetch("x")'],
      ['a response that is not JSON', 'const r = await fetch("data:text/html,<p>");\nawait r.json()'],
    ])('has the line of its author for %s', async (_, body) => {
      const { error } = await run(body);
      const line = body.includes('\n') ? 3 : 2;
      expect(error!.stack).toMatch(
        new RegExp(`^\\w*Error: .*\\n(?: +at JSON.parse .*\\n)? +at Object\\.run \\(component:///\\w+/component\\.js:${line}:`),
      );
    });

    it('an error of TypeScript names the line that was written', async () => {
      const { error } = await sandbox.run(
        jobOf(
          'interface A {\n  a: string;\n}\nexport default {\n  name: "n",\n  run(event: A): void {\n    throw new RangeError("r");\n  },\n}',
        ),
      );
      expect(error!.stack).toMatch(/component\.js:7:11/);
    });

    it('an error of TypeScript that imports types names the position that was written', async () => {
      const code = 'import axios, {\n  AxiosError,\n} from "axios"; export default { name: "n", run(e: AxiosError) { axios.get; null.x } }';
      expect((await sandbox.run(jobOf(code))).error!.stack).toMatch(/component\.js:3:82/);
    });

    it('an error of TypeScript with an enum names the line that was written, too', async () => {
      const { error } = await sandbox.run(
        jobOf('enum A {\n  B,\n  C,\n}\nexport default {\n  name: "n",\n  run() {\n    throw new RangeError(A[A.C]);\n  },\n}'),
      );
      expect(error!.stack).toMatch(/\/component\.js:8:\d+/);
    });

    it.each([
      [
        'in a promise that nobody awaits',
        '(async () => { await null; throw new Error("stray") })(); await new Promise((r) => setTimeout(r, 100))',
        'stray',
      ],
      ['at once, in a method that nobody awaits', 'const go = async () => { throw new Error("stray") }; go()', 'stray'],
      ['in the last promise of all', 'Promise.resolve().then(() => Promise.reject(new Error("stray")))', 'stray'],
      ['in a timer', 'setTimeout(() => { throw new Error("stray") }, 1); await new Promise((r) => setTimeout(r, 100))', 'stray'],
      [
        'in an emitter',
        'const { EventEmitter } = await import("events"); const e = new EventEmitter(); setTimeout(() => e.emit("error", new Error("stray")), 1); await new Promise((r) => setTimeout(r, 100))',
        'stray',
      ],
      ['in a microtask', 'queueMicrotask(() => { throw new Error("stray") }); await new Promise((r) => setTimeout(r, 100))', 'stray'],
      ['that is a text', 'throw "text"', 'text'],
      ['that is null', 'throw null', 'null'],
      ['that is undefined', 'throw undefined', 'undefined'],
      ['that is an object', 'throw { a: 1 }', '{ a: 1 }'],
      ['that throws itself', 'throw new Proxy(new Error("x"), { get() { throw new Error("p") } })', 'cannot be printed'],
      ['of a missing module', 'await import("left-pad")', 'The module "left-pad" is not available'],
      ['of process.exit', 'process.exit(1)', 'process.exit() is not available'],
      ['in respond without customResponse', 'this.plain.respond({})', 'customResponse'],
    ])('%s is the run’s', async (_, body, message) => {
      expect(await run(body, {}, body.includes('plain') ? 'props: { plain: "$.interface.http" },' : '')).toMatchObject({
        status: 'threw',
        error: { message: expect.stringContaining(message) },
      });
    });

    it('carries its code and its cause', async () => {
      const { error } = await run('throw Object.assign(new Error("a"), { code: "E_X" })');
      expect(error).toMatchObject({ code: 'E_X', message: 'a' });
      const caused = await run('throw new Error("a", { cause: Object.assign(new Error("because"), { code: "E_Y" }) })');
      expect(caused.error).toMatchObject({ code: 'E_Y', stack: expect.stringContaining('cause: Error: because') });
    });

    it.each([
      ['a text as its cause', 'throw new Error("a", { cause: "because" })', ['cause: because']],
      ['an object as its cause', 'throw new Error("a", { cause: { a: 1 } })', ['cause: { a: 1 }']],
      [
        'several reasons',
        'await Promise.any([Promise.reject(new TypeError("one")), Promise.reject("two")])',
        ['reason: TypeError: one', 'reason: two'],
      ],
      ['the first ten of many reasons', 'throw new AggregateError(Array(11).fill("x"))', Array<string>(10).fill('reason: x')],
      [
        'the reasons of its cause',
        'throw new Error("a", { cause: new AggregateError([new Error("one")], "b") })',
        ['cause: AggregateError: b', 'reason: Error: one'],
      ],
      ['a null cause', 'throw new Error("a", { cause: null })', []],
    ])('shows %s', async (_, body, lines) => {
      const { error } = await run(body);
      expect(error?.stack.match(/(?<=\n {2})(?:cause|reason): .*/g) ?? []).toEqual(lines);
    });

    it('keeps what was emitted, logged and stored before it', async () => {
      const outcome = await run('this.$emit(1); this.db.set("a", 1); console.log("l"); throw new Error("e")');
      expect(outcome).toMatchObject({ status: 'threw', emits: [{ event: '1' }], db: { a: '1' }, logs: [{ message: 'l' }] });
    });
  });

  describe('http.respond', () => {
    const reply = async (body: string, job: Partial<RunJob> = {}) => {
      const replies: HttpReply[] = [];
      const outcome = await run(body, { ...job, onRespond: (r) => void replies.push(r) });
      return { outcome, replies: replies.map(({ status, headers, body }) => ({ status, headers, body: body.toString() })) };
    };

    it.each([
      ['nothing', '', { status: 200, headers: {}, body: '' }],
      [
        'a text',
        '{ status: 201, body: "hi", headers: { "Content-Type": "text/plain", "X-N": 5 } }',
        { status: 201, headers: { 'content-type': 'text/plain', 'x-n': '5' }, body: 'hi' },
      ],
      ['a status as text', '{ status: "404", body: "no" }', { status: 404, headers: {}, body: 'no' }],
      ['an object', '{ status: 200, body: { a: 1 } }', { status: 200, headers: { 'content-type': 'application/json' }, body: '{"a":1}' }],
      [
        'an object of another type',
        '{ body: [1], headers: { "content-type": "application/cloudevents+json" } }',
        { status: 200, headers: { 'content-type': 'application/cloudevents+json' }, body: '[1]' },
      ],
      ['an empty object', '{ body: Object.create(null) }', { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }],
      [
        'an object that writes its own JSON',
        '{ body: new (class { toJSON() { return {} } })() }',
        { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' },
      ],
      [
        'an error, as its status',
        '{ status: 500, body: new RangeError("a") }',
        { status: 500, headers: { 'content-type': 'application/json' }, body: '{}' },
      ],
      ['a Buffer', '{ body: Buffer.from("buf") }', { status: 200, headers: {}, body: 'buf' }],
    ])('responds with %s', async (_, argument, expected) => {
      const { outcome, replies } = await reply(`this.http.respond(${argument})`);
      expect({ responded: outcome.responded, replies }).toEqual({ responded: true, replies: [expected] });
    });

    it('counts once', async () => {
      const { replies } = await reply('this.http.respond({ body: "1" }); this.http.respond({ body: "2" })');
      expect(replies).toEqual([{ status: 200, headers: {}, body: '1' }]);
    });

    it.each([
      ['Headers', 'new Headers([["a", "1"], ["A", "2"], ["set-cookie", "b=c"], ["set-cookie", "d=e"]])'],
      ['pairs', '[["a", "1"], ["A", "2"], ["set-cookie", "b=c"], ["Set-Cookie", "d=e"]]'],
      ['an object', '{ a: ["1", 2], "Set-Cookie": ["b=c", "d=e"] }'],
    ])('takes headers as %s', async (_, headers) => {
      const { replies } = await reply(`this.http.respond({ headers: ${headers}, body: {} })`);
      expect(replies[0]!.headers).toEqual({ 'content-type': 'application/json', a: '1, 2', 'set-cookie': ['b=c', 'd=e'] });
    });

    it('is sent while the run continues', async () => {
      const job = { accountId: 'u_responds' };
      // The reply releases the run: sent only at the end, it would never come.
      let release: Promise<RunOutcome> | undefined;
      const outcome = await run('this.http.respond({}); await new Promise((r) => (globalThis.release = r))', {
        ...job,
        onRespond: () => void (release = run('globalThis.release()', job)),
      });
      expect(outcome).toMatchObject({ status: 'ok', responded: true });
      expect(await release).toMatchObject({ status: 'ok' });
    });

    it.each([
      ['a header that splits the response', '{ headers: { a: "b\\r\\nc: d" } }', 'cannot be sent'],
      ['a header whose value is too long', '{ headers: { a: "x".repeat(20_000) } }', 'a value 16384 characters'],
      ['a header whose name is too long', '{ headers: { ["a".repeat(300)]: "x" } }', 'a name has at most 256'],
      ['a header of too many values', '{ headers: { "set-cookie": Array(101).fill("a=b") } }', 'at most 100 values'],
      ['too many headers', '{ headers: Object.fromEntries(Array.from({ length: 101 }, (_, n) => ["h" + n, "x"])) }', '101 headers'],
      ['a text without an object', '"hello"', 'http.respond takes an object'],
      ['a list', '[1]', 'http.respond takes an object'],
      ['a promise', '(async () => ({ status: 401 }))()', 'http.respond takes an object, not a promise: await it first'],
      ['another thenable', '{ status: 401, then() {} }', 'http.respond takes an object, not a promise: await it first'],
      ['a function as body', '{ body: () => 1 }', 'a value of type function cannot be sent'],
      ['a symbol as body', '{ body: Symbol() }', 'a value of type symbol cannot be sent'],
      ['a Map as body', '{ body: new Map([[1, 2]]) }', 'a value of type Map cannot be sent'],
      ['a Blob as body', '{ body: new Blob(["abc"]) }', 'a value of type Blob cannot be sent'],
      ['form fields as body', '{ body: new URLSearchParams("a=b") }', 'a value of type URLSearchParams cannot be sent'],
      ['a promise as body', '{ body: Promise.resolve(1) }', 'a value of type Promise cannot be sent'],
      ['a stream as body', '{ body: require("stream").Readable.from(["a"]) }', 'a value of type Readable cannot be sent'],
      ['a Response', 'new Response("hi")', 'a value of type ReadableStream cannot be sent'],
      ['a bad status', '{ status: 99 }', 'is not one of 200 to 599'],
      ['a body over the limit', '{ body: "x".repeat(6000) }', 'the limit is 5000'],
    ])('refuses %s', async (_, argument, message) => {
      const { outcome, replies } = await reply(`this.http.respond(${argument})`);
      expect(outcome).toMatchObject({ status: 'threw', error: { message: expect.stringContaining(message) }, responded: false });
      expect(replies).toEqual([]);
    });
  });

  describe('output within the limits', () => {
    let roomy: Sandbox;
    beforeAll(
      async () =>
        (roomy = await startTestSandbox({
          limits: {
            ...limits,
            cpuMs: 20_000,
            silenceCpuMs: 20_000,
            emits: 1000,
            eventBytes: 1 << 20,
            emittedBytes: 8 << 20,
            logs: 500,
            logBytes: 16 << 10,
          },
        })),
    );
    afterAll(() => roomy.close());
    const emitsOf = (body: string) => roomy.run(jobOf(`export default { name: "n", run() {\n${body}\n} }`));

    it.each([
      [
        'many events with long summaries',
        'for (let n = 0; n < 200; n++) this.$emit({ n }, { id: n, summary: "\\u0001".repeat(30_000) })',
        200,
      ],
      ['events with long ids', 'for (let n = 0; n < 1000; n++) this.$emit({ n }, { id: `${n} ${"\\u0001".repeat(4000)}` })', 1000],
      ['a large event after others', 'for (let n = 0; n < 9; n++) this.$emit("\\u0001".repeat(n < 8 ? 5000 : 170_000))', 9],
      [
        'a large event after long lines',
        'for (let n = 0; n < 15; n++) console.log("\\u0001".repeat(16_000)); this.$emit("\\u0001".repeat(170_000))',
        1,
      ],
    ])('is kept: %s', async (_, body, expected) => {
      const outcome = await emitsOf(body);
      expect([outcome.status, outcome.error?.message, outcome.emits.length]).toEqual(['ok', undefined, expected]);
    });

    it('counts summaries as part of the events: one that is too much throws in the component', async () => {
      const outcome = await emitsOf('for (let n = 0; n < 200; n++) this.$emit({ n }, { summary: "x".repeat(60_000) })');
      expect(outcome).toMatchObject({
        status: 'threw',
        error: { message: expect.stringContaining('bytes of events, ids and summaries in one run') },
      });
      expect(outcome.emits).toHaveLength(139);
    });
  });

  describe('a run that does not end well', () => {
    let patient: Sandbox;
    beforeAll(
      async () =>
        (patient = await startTestSandbox({
          limits: { ...limits, cpuMs: 20_000, silenceCpuMs: 20_000, eventBytes: 1 << 20, emittedBytes: 1 << 20 },
        })),
    );
    afterAll(() => patient.close());
    // Directly before: the process gets no turn in which it could send the rest
    const before = 'this.$emit("before"); this.db.set("a", 1); console.log("before");';
    const kept = { emits: [{ event: '"before"' }], db: { a: '1' }, logs: [{ message: 'before' }] };

    it.each<[string, string, string, string]>([
      ['an endless loop', 'for (;;);', 'killed', 'BLOCKED'],
      ['an endless loop after an await', 'await null; for (;;);', 'killed', 'BLOCKED'],
      ['an endless loop in a later turn', 'await new Promise((r) => setTimeout(r, 20)); for (;;);', 'killed', 'BLOCKED'],
      ['endless microtasks', 'for (;;) await null;', 'killed', 'BLOCKED'],
      [
        'busy turns without end',
        'for (;;) { const t = Date.now(); while (Date.now() - t < 20); await new Promise((r) => setImmediate(r)) }',
        'killed',
        'CPU',
      ],
    ])('is killed for %s, and keeps what came before', async (_, body, status, code) => {
      expect(await run(`${before} ${body}`)).toMatchObject({ status, error: { code }, ...kept });
    });

    it.each([
      ['arrays without end', 'const a = []; for (;;) a.push(new Array(1e6).fill(1))'],
      ['buffers without end', 'const a = []; for (;;) a.push(Buffer.alloc(1 << 22, 1))'],
      [
        'a buffer after the other',
        'const a = []; for (;;) { a.push(Buffer.alloc(1 << 22, 1)); await new Promise((r) => setTimeout(r, 1)) }',
      ],
    ])('runs out of memory by %s, and keeps what came before', async (_, body) => {
      const code = `export default { name: "n", props: { db: "$.service.db" }, async run() { ${before} ${body} } }`;
      expect(await patient.run(jobOf(code))).toMatchObject({ status: 'memory', error: { code: 'MEMORY' }, ...kept });
    });

    it('keeps an event that is larger than what the kernel takes at once', async () => {
      const code =
        'export default { name: "n", run() { this.$emit("x".repeat(1e6)); const a = []; for (;;) a.push(new Array(1e6).fill(1)) } }';
      const { status, emits } = await patient.run(jobOf(code));
      expect({ status, bytes: emits.map(({ event }) => event.length) }).toEqual({ status: 'memory', bytes: [1_000_002] });
    });

    it('keeps most of the events that a run emits, with short pauses, before an endless loop', async () => {
      const body =
        'for (let i = 0; i < 20; i++) { this.$emit(i); for (const t = performance.now(); performance.now() - t < 3; ); } for (;;);';
      expect((await run(body)).emits.length).toBeGreaterThan(10);
    });

    it('takes an entry of the db that is written again and again without a pause', async () => {
      const code = `export default { name: "n", props: { db: "$.service.db" }, run() {
        for (let i = 0; i < 1000; i++) this.db.set("a", String(i).padEnd(100_000)) } }`;
      const roomy = await startTestSandbox();
      const { status, db } = await roomy.run(jobOf(code));
      await roomy.close();
      expect({ status, last: db.a?.slice(0, 4) }).toEqual({ status: 'ok', last: '"999' });
    });

    it('takes an entry of the db that is written again and again with pauses, more often than all output of a run may have', async () => {
      const code = `export default { name: "n", props: { db: "$.service.db" }, async run() {
        for (let i = 0; i < 100; i++) { this.db.set("a", String(i).padEnd(900_000)); await new Promise(setImmediate) } this.db.set("b", 1) } }`;
      const roomy = await startTestSandbox();
      const { status, error, db } = await roomy.run(jobOf(code));
      await roomy.close();
      expect({ status, error, a: db.a?.slice(0, 3), b: db.b }).toEqual({ status: 'ok', error: null, a: '"99', b: '1' });
    });

    it.each([
      ['a promise that never settles', 'await new Promise(() => {})'],
      ['a thenable that never settles', 'return { then() {} }'],
    ])('times out for %s, and keeps what came before', async (_, body) => {
      // A busy machine may need longer than the first limits to get as far as the last line
      let outcome: RunOutcome | undefined;
      for (const wallMs of [300, 5000, 60_000]) {
        outcome = await run(`${before} ${body}`, { wallMs });
        expect(outcome).toMatchObject({ status: 'timeout', error: { code: 'TIMEOUT' } });
        if (outcome.logs.length > 0) break;
      }
      expect(outcome).toMatchObject(kept);
    });

    it('leaves its account able to run at once', async () => {
      const job = { accountId: 'u_again' };
      expect(await run('for (;;);', job)).toMatchObject({ status: 'killed' });
      expect(await run('this.$emit(1)', job)).toMatchObject({ status: 'ok', emits: [{ event: '1' }] });
    });

    it('is repeated if another run was the cause, and responds to its HTTP request once', async () => {
      let replies = 0;
      const slow = 'this.$emit(1); this.http.respond({}); await new Promise((r) => setTimeout(r, 400))';
      const job = { accountId: 'u_innocent' };
      await run('this.$emit(0)', job);
      const innocents = [1, 2].map(() => run(slow, { ...job, onRespond: () => replies++ }));
      await new Promise((r) => setTimeout(r, 50));
      const [guilty, ...outcomes] = await Promise.all([run('for (;;);', job), ...innocents]);
      expect(guilty).toMatchObject({ status: 'killed', error: { code: 'BLOCKED' } });
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'ok', emits: [{ event: '1' }], responded: true });
      expect(replies).toBe(2);
    });
  });

  describe('that was the only one in progress in a process that has had others', () => {
    let calls = 0;
    const server = createServer((_, response) => response.end(String(++calls)));
    let connected: Sandbox;
    const runOf = (accountId: string, body: string, job: Partial<RunJob> = {}) =>
      connected.run(jobOf(`export default { name: "n", async run() { ${body} } }`, { accountId, ...job }));
    beforeAll(async () => {
      connected = await startTestSandbox({ limits: { cpuMs: 2500, silenceCpuMs: 2000 }, allowPrivateHosts: '127.0.0.1' });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    });
    afterAll(async () => {
      await connected.close();
      server.close();
    });

    it.each<[string, string, Partial<RunJob>, object]>([
      ['an endless loop', 'for (;;);', {}, { status: 'killed', error: { code: 'BLOCKED' } }],
      [
        'busy turns without end',
        'for (;;) { const t = Date.now(); while (Date.now() - t < 20); await new Promise((r) => setImmediate(r)) }',
        {},
        { status: 'killed', error: { code: 'CPU' } },
      ],
      ['a loop until its time is over', 'for (;;);', { wallMs: 1800 }, { status: 'timeout', error: { code: 'TIMEOUT' } }],
    ])('is not repeated if it ended because of %s, after it had begun', async (kind, loop, job, outcome) => {
      await runOf(kind, 'globalThis.used = true');
      const before = calls;
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      expect(await runOf(kind, `await (await fetch("${url}")).text(); ${loop}`, job)).toMatchObject(outcome);
      expect(calls - before).toBe(1);
    });

    it('is repeated if code that an earlier run has left running kept it from beginning', async () => {
      // After the last message of this run, and before the next one is read
      const loopAfterEnd = 'let n = 100; const wait = () => (n-- > 0 ? queueMicrotask(wait) : setImmediate(() => { for (;;); })); wait();';
      expect(await runOf('u_left', loopAfterEnd)).toMatchObject({ status: 'ok' });
      expect(await runOf('u_left', 'this.$emit(1)')).toMatchObject({ status: 'ok', emits: [{ event: '1' }] });
    });
  });

  it('runs several at a time in one process, and no more than it may', async () => {
    // The first runs wait for one another until `most` are inside; then there is time for one too many to come in.
    const inside = async (most: number, job: Partial<RunJob>) => {
      const body = `const state = (globalThis.state${most} ??= { inside: 0, full: false }); const seen = ++state.inside;
        const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
        while (state.inside < ${most} && !state.full) await sleep(5);
        if (!state.full) await sleep(60);
        state.full = true; state.inside--; this.$emit(seen)`;
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => run(body, { accountId: 'u_many', ...job })));
      return Math.max(...outcomes.flatMap((outcome) => events(outcome) as number[]));
    };
    expect(await inside(4, {})).toBe(4);
    expect(await inside(8, { concurrency: 8 })).toBe(8);
  });

  it('does not count the time for which the machine stood still', async () => {
    const { promise: running, resolve: onRespond } = Promise.withResolvers<unknown>();
    const run = sandbox.run(
      jobOf(
        `export default { name: "n", props: { http: { type: "$.interface.http", customResponse: true } }, async run() {
          this.http.respond({ status: 200 }); await new Promise((r) => setTimeout(r, 2700)); this.$emit("done");
        } }`,
        { accountId: 'u_still', wallMs: 2000, onRespond },
      ),
    );
    await running;
    // The same for this process
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
    expect(events(await run)).toEqual(['done']);
  });

  it('replaces a process whose runs leave files or connections open, before others find none left', async () => {
    const job = { accountId: 'u_leaks' };
    const open = 'const fs = require("fs"); const open = () => fs.openSync(process.argv[1]);';
    expect(events(await run(`${open} try { for (;;) open(); } catch (error) { this.$emit(error.code) }`, job))).toEqual(['EMFILE']);
    for (let n = 0; n < 5; n++) expect(await run(`${open} for (let n = 0; n < 300; n++) open();`, job)).toMatchObject({ status: 'ok' });
  });

  it('replaces a process whose runs have written much to its standard error, before it reaches the limit', async () => {
    const count = 'globalThis.runs = (globalThis.runs ?? 0) + 1; this.$emit(globalThis.runs);';
    // More than the kernel buffers, so that most of it has been read when the run ends
    const warn = 'await new Promise((written) => process.stderr.write("x".repeat(800_000), written));';
    const first = await run(count + warn, { accountId: 'u_warns' });
    const second = await run(count, { accountId: 'u_warns' });
    expect([first, second].map((outcome) => [outcome.status, ...events(outcome)])).toEqual([
      ['ok', 1],
      ['ok', 1],
    ]);
  });

  it('names too many open files as the reason why nothing can be connected to', async () => {
    const body = 'try { for (;;) require("fs").openSync(process.argv[1]) } catch {} await fetch("http://127.0.0.1:24211/")';
    const { error } = await run(body, { accountId: 'u_leaks_and_calls' });
    expect(error).toMatchObject({ code: 'EMFILE', stack: expect.stringContaining('too many open files') });
  });

  it.each([
    ['an ES module', 'let known; export default { name: "n", run(event) { known ??= event; this.$emit(known) } }'],
    ['CommonJS', 'let known; module.exports = { name: "n", run(event) { known ??= event; this.$emit(known) } }'],
    ['TypeScript', 'let known: string; export default { name: "n", run(event: string) { known ??= event; this.$emit(known) } }'],
  ])('keeps the variables of a module apart for each source: %s', async (_, code) => {
    const runOf = (sourceId: string, event: string) =>
      sandbox.run(jobOf(code, { accountId: 'u_modules', sourceId, event: JSON.stringify(event) }));
    expect(events(await runOf('dc_1', 'secret of one'))).toEqual(['secret of one']);
    expect(events(await runOf('dc_2', 'secret of two'))).toEqual(['secret of two']);
    expect(events(await runOf('dc_1', 'another'))).toEqual(['secret of one']);
  });

  it.each<[string, Partial<RunJob>, Partial<RunJob>]>([
    ['props', { props: { token: 'old' } }, { props: { token: 'new' } }],
    ['credentials', { props: { app: { $auth: { token: 'old' } } } }, { props: { app: { $auth: { token: 'new' } } } }],
    ['endpoint', { endpoint: 'https://old.test' }, { endpoint: 'https://new.test' }],
  ])('starts with new variables after a change of the %s of a source', async (_, before, after) => {
    const code =
      'let runs = 0; export default { name: "n", props: { token: "string" }, run() { this.$emit([++runs, process.env.PD_COMPONENT]) } }';
    const runsOf = async (job: Partial<RunJob>) => events(await sandbox.run(jobOf(code, { accountId: 'u_changes', ...job })))[0];
    expect([await runsOf(before), await runsOf(before), await runsOf(after)]).toEqual([1, 2, 1].map((n) => [n, 'dc_test']));
  });

  it.each([
    ['an ES module', 'export default { name: "n", run() { this.$emit(++seen) } }'],
    ['CommonJS', 'module.exports = { name: "n", run() { this.$emit(++seen) } }'],
    ['TypeScript', 'export default { name: "n", run(this: any) { this.$emit(++seen) } }'],
  ])('evaluates code again that has failed while it was loaded: %s', async (kind, component) => {
    const code = `let seen = 0; if (!globalThis.isUp) { globalThis.isUp = true; throw new Error("down") } ${component}`;
    const runOf = () => sandbox.run(jobOf(code, { accountId: `u_reload ${kind}` }));
    expect(await runOf()).toMatchObject({ status: 'threw', error: { message: 'down' } });
    expect([...events(await runOf()), ...events(await runOf())]).toEqual([1, 2]);
  });

  it('gives the hook deactivate less time than a run', async () => {
    const brief = await startTestSandbox({ limits: { deactivateMs: 300 } });
    try {
      const code =
        'const wait = () => new Promise((r) => setTimeout(r, 1000)); export default { name: "n", hooks: { deactivate: wait }, run: wait }';
      const outcomes = await Promise.all([brief.run(jobOf(code, { method: 'deactivate' })), brief.run(jobOf(code))]);
      expect(outcomes.map(({ status }) => status)).toEqual(['timeout', 'ok']);
    } finally {
      await brief.close();
    }
  });

  it.each([
    ['a timer', 'setInterval(() => {}, 10)'],
    ['a timer that keeps nothing alive', 'setInterval(() => {}, 10).unref()'],
    ['nothing that can be seen', ''],
    ['a timer, although it failed', 'setInterval(() => {}, 10); throw new Error("e")'],
  ])('ends the process in which a source that is forgotten has left %s', async (_, body) => {
    const alone = await startTestSandbox({ blanks: 0, outdatedAgeMs: 0 });
    try {
      await alone.run(jobOf(`export default { name: "n", run() { ${body} } }`, { sourceId: 'dc_1' }));
      alone.forget('u_test', 'dc_2');
      expect(alone.health().processes).toBe(1);
      alone.forget('u_test', 'dc_1');
      while (alone.health().processes > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      await alone.close();
    }
  });

  it('ends the process in which a source leaves code running that was forgotten during the run', async () => {
    const alone = await startTestSandbox({ blanks: 0, outdatedAgeMs: 0 });
    try {
      const { promise: running, resolve: onRespond } = Promise.withResolvers<unknown>();
      const code = `export default { name: "n", props: { http: { type: "$.interface.http", customResponse: true } }, async run() {
        this.http.respond({ status: 200 }); setInterval(() => {}, 10); await new Promise((r) => setTimeout(r, 300));
      } }`;
      const run = alone.run(jobOf(code, { sourceId: 'dc_1', onRespond }));
      await running;
      alone.forget('u_test', 'dc_1');
      expect(await run).toMatchObject({ status: 'ok' });
      while (alone.health().processes > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      await alone.close();
    }
  });

  it('replaces the process of an account in which a component has broken what its runs share', async () => {
    const shared = await startTestSandbox({ blanks: 0, doubtfulAgeMs: 0 });
    try {
      await shared.run(jobOf('export default { name: "n", run() { Object.entries = undefined; throw new Error("e") } }'));
      const innocent = () => shared.run(jobOf('export default { name: "innocent", run() {} }', { sourceId: 'dc_2' }));
      const statuses = [await innocent(), await innocent(), await innocent(), await innocent()].map(({ status }) => status);
      // the first of the three that failed is the one that broke it
      expect(statuses).toEqual(['threw', 'threw', 'ok', 'ok']);
    } finally {
      await shared.close();
    }
  });

  it.each([
    'Promise = undefined',
    'Promise.race = undefined',
    'JSON.parse = undefined',
    'Object.assign = undefined',
    'Buffer.from = undefined',
  ])('runs the other sources of an account in which a component has set %s', async (broken) => {
    const job = { accountId: `u_${broken}` };
    await run(broken, job);
    const event = JSON.stringify({ method: 'POST', headers: { 'content-type': 'text/plain' } });
    const httpBody = Buffer.from('text').toString('base64');
    expect(await run('', { ...job, sourceId: 'dc_2', event, httpBody })).toMatchObject({ status: 'ok' });
  });

  it('runs each account in a separate process', async () => {
    await run('globalThis.secret = 1', { accountId: 'u_a' });
    expect(events(await run('this.$emit(typeof globalThis.secret)', { accountId: 'u_a' }))).toEqual(['number']);
    expect(events(await run('this.$emit(typeof globalThis.secret)', { accountId: 'u_b' }))).toEqual(['undefined']);
  });

  it('returns the memory of its process by process.memoryUsage()', async () => {
    const [{ rss, ...usage }, only] = events(
      await run('globalThis.kept = Buffer.alloc(20e6, 1); this.$emit(process.memoryUsage()); this.$emit(process.memoryUsage.rss())', {
        accountId: 'u_memory',
      }),
    ) as [NodeJS.MemoryUsage, number];
    expect(usage).toEqual({ heapTotal: expect.any(Number), heapUsed: expect.any(Number), external: expect.any(Number), arrayBuffers: 0 });
    expect(usage.heapTotal).toBeGreaterThanOrEqual(usage.heapUsed);
    expect(usage.external).toBeGreaterThan(20e6);
    expect(rss).toBeGreaterThan(20e6 + usage.heapUsed);
    expect(only).toBeGreaterThanOrEqual(rss);
  });

  it('measures time on the wall and on the CPU', async () => {
    const { wallMs, cpuMs } = await run(
      'const c = process.cpuUsage(); while (process.cpuUsage(c).user < 1e5); await new Promise((r) => setTimeout(r, 200))',
    );
    expect(wallMs).toBeGreaterThan(290);
    if (process.platform === 'linux') expect(cpuMs).toBeGreaterThan(50);
  });
});
