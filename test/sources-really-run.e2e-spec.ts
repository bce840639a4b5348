import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { joinSystem, type System } from './support/system.js';

let system: System;
let api: Api;

beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
});
afterAll(() => system?.stop());

/** The events of a stream, oldest first. */
const events = async (source: { id: string }, stream = ''): Promise<any[]> => {
  const { body } = await api.get(`/sources/${source.id}/event_summaries?limit=100&expand=event&event_name=${encodeURIComponent(stream)}`);
  return body.data.map(({ event }: { event: unknown }) => event).reverse();
};
const expectEvents = (source: { id: string }, expected: unknown[], stream = '') =>
  eventually(async () => expect(await events(source, stream)).toEqual(expected));
const call = (source: any, body: string, headers: Record<string, string> = {}) =>
  http('POST', source.configured_props.http.endpoint_url, { body, headers });
const runNow = async (source: { id: string }, event: unknown): Promise<string> => {
  const response = await api.post(`/sources/${source.id}/run`, { event });
  expect(response.status).toBe(202);
  return response.body.data.id;
};

describe('a source', () => {
  it('keeps its db between runs, one run at a time', async () => {
    const source = await api.source(`export default { name: 'counter', props: { db: '$.service.db' },
      async run() { const n = this.db.get('n') ?? 0; await new Promise((r) => setTimeout(r, 20)); this.db.set('n', n + 1); this.$emit(n); } }`);
    await Promise.all(Array.from({ length: 8 }, (_, n) => runNow(source, n)));
    await expectEvents(source, [0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('runs several at a time if its component sets concurrency, from its first runs on', async () => {
    // each waits until there are three of them, for ten seconds at most
    const source =
      await api.source(`let running = 0, most = 0; export default { name: 'parallel', concurrency: 3, props: { http: '$.interface.http' },
      async run() { most = Math.max(most, ++running); for (let n = 0; most < 3 && n < 500; n++) await new Promise((r) => setTimeout(r, 20));
        this.$emit(most); running--; } }`);
    await Promise.all([runNow(source, 0), call(source, '1'), call(source, '2')]);
    await expectEvents(source, [3, 3, 3]);
    for (let n = 3; n <= 6; n++) await runNow(source, n);
    await eventually(async () => expect(await events(source)).toHaveLength(7));
    expect(Math.max(...(await events(source)))).toBe(3);
  });

  it('emits more than Kafka accepts at once, without stopping others', async () => {
    const source = await api.source(`export default { name: 'heavy', run() {
      for (let n = 0; n < 6; n++) this.$emit({ n, noise: Array.from({ length: 100_000 }, () => Math.random().toString(36).slice(2, 11)).join('') });
    } }`);
    await runNow(source, 0);
    await eventually(async () => expect((await events(source)).length).toBe(6));
    const other = await api.source("export default { name: 'light', run(e) { this.$emit(e) } }");
    await runNow(other, 1);
    await expectEvents(other, [1]);
  });

  it('emits no id twice if its component dedupes, even with concurrency', async () => {
    const source = await api.source(`export default { name: 'careful', concurrency: 3, dedupe: 'unique',
      async run(e) { await new Promise((r) => setTimeout(r, 20)); this.$emit(e, { id: 'one' }); this.$emit(e, { id: e }); } }`);
    await Promise.all(Array.from({ length: 6 }, (_, n) => runNow(source, n)));
    await eventually(async () => expect(new Set(await events(source)).size).toBe(6));
    expect(await events(source)).toHaveLength(7);
  });

  it('may emit text that no database can store, which is cleaned; a reserved stream is an error', async () => {
    const source = await api.source(`export default { name: 'awkward', run(e) {
      const half = '😀'.slice(0, 1);
      this.$emit({ n: 1, half, nul: '\\0' }, { id: 'a\\0' + half, summary: 'b\\0' + half });
      this.$emit({ n: 2 }, { id: half, delivery_ts: Date.now() + 1000 });
      for (const name of ['$bogus', '*', 'a\\0b']) try { this.$emit({ n: 3 }, { name }) } catch {}
      this.$emit({ n: 4 });
    } }`);
    await runNow(source, 0);
    await eventually(async () => expect((await events(source)).map(({ n }) => n)).toEqual([1, 4, 2]));
    const { body } = await api.get(`/sources/${source.id}/event_summaries`);
    expect(body.data.at(-1)).toMatchObject({
      event: { n: 1, half: '\ud83d', nul: '\0' },
      metadata: { id: 'a\uFFFD\uFFFD', summary: 'b\uFFFD\uFFFD' },
    });
    const errors = await events(source, '$errors');
    expect(errors.map(({ error }) => error)).toMatchObject([
      { code: 'BadStreamName', message: expect.stringContaining('may begin with $') },
      { code: 'BadStreamName', message: expect.stringContaining('*') },
      { code: 'BadStreamName', message: expect.stringContaining('NUL') },
    ]);
  });

  it('reports the errors of code that its runs leave running', async () => {
    const source = await api.source(`export default { name: 'forgetful', run(e) { this.later(e) },
      methods: { async later({ ms }) { await new Promise((r) => setTimeout(r, ms)); throw new Error('after ' + ms) } } }`);
    for (const ms of [0, 50]) await runNow(source, { ms });
    await eventually(async () =>
      expect((await events(source, '$errors')).map(({ error }) => error.message).sort()).toEqual(['after 0', 'after 50']),
    );
  });

  it('is run again for an event if its component sets retries, without delaying later events', async () => {
    const emitter = await api.source("export default { name: 'emitter', run(e) { this.$emit(e) } }");
    const source = await api.source(`export default { name: 'persistent', retries: 2, props: { db: '$.service.db' },
      run({ n, failures }) {
        const tries = (this.db.get('tries' + n) ?? 0) + 1;
        this.db.set('tries' + n, tries);
        if (tries <= failures) throw new Error('try ' + tries);
        this.$emit({ n, tries });
      } }`);
    await api.subscribe(emitter.id, source.id);
    await runNow(emitter, { n: 1, failures: 1 });
    await runNow(emitter, { n: 2, failures: 0 });
    await expectEvents(source, [{ n: 2, tries: 1 }]);
    const { body } = await api.get(`/sources/${emitter.id}/event_summaries`);
    const [second, first] = body.data.map(({ id }: { id: string }) => id);
    const listener = async (event: string) => (await api.get(`/sources/${emitter.id}/events/${event}/deliveries`)).body.data[0];
    const failed = { status_code: null, error: 'Error: try 1', response_body: null };
    expect(await listener(first)).toMatchObject({ listener_id: source.id, status: 'pending', attempts: [failed] });
    // the first pause of the schedule is five seconds
    await eventually(
      async () =>
        expect(await events(source)).toEqual([
          { n: 2, tries: 1 },
          { n: 1, tries: 2 },
        ]),
      { withinMs: 20_000 },
    );
    const { run_id } = await listener(second);
    expect(await listener(second)).toMatchObject({ status: 'succeeded', attempts: [{ error: null }] });
    const repeated = await listener(first);
    expect(repeated).toMatchObject({ status: 'succeeded', attempts: [failed, { error: null }] });
    const runs = (await api.get(`/sources/${source.id}/runs`)).body.data;
    expect(runs.map(({ id, status }: any) => [id, status])).toEqual([
      [repeated.run_id, 'succeeded'],
      [run_id, 'succeeded'],
      [expect.any(String), 'failed'],
    ]);
    expect(await events(source, '$errors')).toHaveLength(1);
  });

  it('has its hooks run when it is created, changed and switched', async () => {
    const code = (
      version: number,
    ) => `const say = (hook) => async function () { this.$emit({ hook, version: ${version}, url: this.http.endpoint !== undefined }, { name: 'hooks' }); };
      export default { name: 'hooked', props: { http: '$.interface.http' }, hooks: { deploy: say('deploy'), activate: say('activate'), deactivate: say('deactivate') } }`;
    const source = await api.source(code(1));
    const said = (hook: string, version: number) => ({ hook, version, url: true });
    await expectEvents(source, [said('deploy', 1), said('activate', 1)], 'hooks');
    await api.put(`/sources/${source.id}`, { component_code: code(2) });
    await expectEvents(source, [said('deploy', 1), said('activate', 1), said('deactivate', 1), said('activate', 2)], 'hooks');
    await api.put(`/sources/${source.id}`, { component_code: code(2), active: false });
    await eventually(async () => expect((await events(source, 'hooks')).at(-1)).toEqual(said('deactivate', 2)));
    expect((await call(source, 'x')).status).toBe(404);
    await api.put(`/sources/${source.id}`, { component_code: code(2) });
    await eventually(async () => expect((await events(source, 'hooks')).at(-1)).toEqual(said('activate', 2)));
  });

  it('reports the requests that it had not begun when it was switched off', async () => {
    const source = await api.source(`export default { name: 'slow', props: { http: '$.interface.http' },
      async run({ body }) { await new Promise((r) => setTimeout(r, 500)); this.$emit(body); } }`);
    const calls = await Promise.all(Array.from({ length: 60 }, (_, n) => call(source, `"${n}"`)));
    expect(calls.every(({ status }) => status === 200)).toBe(true);
    expect((await api.patch(`/sources/${source.id}`, { active: false })).status).toBe(200);
    await eventually(async () => {
      const begun = await events(source);
      const errors = await events(source, '$errors');
      expect(new Set(errors.map(({ error }) => error.code))).toEqual(new Set(['SourceInactive']));
      const notBegun = errors.map(({ error }) => Number(/\d+/.exec(error.message)));
      const total = begun.length + notBegun.reduce((sum, n) => sum + n, 0);
      // one that begins while the others are deleted counts twice
      expect([60, 61]).toContain(total);
      expect(errors[0].original_event.method).toBe('POST');
    });
  });

  it('is deleted after its last hook, whose events, logs and errors still go to its listeners', async () => {
    const listener = await api.source("export default { name: 'heir', run(e) { this.$emit(e.error?.message ?? e.message ?? e); } }");
    const source = await api.source(`export default { name: 'testator', hooks: {
      async deactivate() { await new Promise((r) => setTimeout(r, 500)); this.$emit('the end', { name: 'will' }); console.log('a line'); throw new Error('too early'); }
    } }`);
    for (const stream of ['will', '$logs', '$errors']) {
      const subscribed = await api.post(`/subscriptions?emitter_id=${source.id}&event_name=${stream}&listener_id=${listener.id}`);
      expect(subscribed.status).toBe(200);
    }
    expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
    expect((await api.get(`/sources/${source.id}`)).status).toBe(404);
    const { body } = await api.get('/users/me/subscriptions');
    expect(body.data.filter(({ emitter_id }: any) => emitter_id === source.id)).toEqual([]);
    await eventually(async () => expect((await events(listener)).toSorted()).toEqual(['a line', 'the end', 'too early']));
  });

  it('is deleted even if its hook throws', async () => {
    const source = await api.source(
      "export default { name: 'stubborn', props: { http: '$.interface.http' }, hooks: { deactivate() { throw new Error('never'); } } }",
    );
    expect((await api.delete(`/sources/${source.id}`)).status).toBe(204);
    await eventually(async () => expect((await call(source, 'x')).status).toBe(404));
  });

  it('responds to requests itself if its component wants to', async () => {
    const source =
      await api.source(`export default { name: 'responder', props: { http: { type: '$.interface.http', customResponse: true } },
      async run(e) { if (e.body === 'silent') return; this.http.respond({ status: 418, headers: { 'x-tea': 'pot' }, body: { got: e.body } }); this.$emit(e.body); } }`);
    const response = await call(source, 'tea', { 'content-type': 'text/plain' });
    expect(response).toMatchObject({
      status: 418,
      headers: { 'x-tea': 'pot', 'content-security-policy': 'sandbox' },
      body: { got: 'tea' },
    });
    expect((await call(source, 'silent')).status).toBe(400);
    await expectEvents(source, ['tea']);
  });

  it('gets large bodies parsed, whether or not it responds itself', async () => {
    const large = { n: 1, text: 'x"'.repeat(100_000) };
    const component = (name: string, prop: string, more: string) =>
      `export default { name: '${name}', props: { http: ${prop} }, run({ body, bodyRaw }) { this.$emit([body.n, body.text.length, bodyRaw.length]); ${more} } }`;
    const quiet = await api.source(component('large', "'$.interface.http'", ''));
    const loud = await api.source(
      component('large-loud', "{ type: '$.interface.http', customResponse: true }", 'this.http.respond({ status: 201, body });'),
    );
    const headers = { 'content-type': 'application/json' };
    expect((await call(quiet, JSON.stringify(large), headers)).status).toBe(200);
    expect(await call(loud, JSON.stringify(large), headers)).toMatchObject({ status: 201, body: large });
    for (const source of [quiet, loud]) await expectEvents(source, [[1, 200_000, JSON.stringify(large).length]]);
  });

  it('drops events that it has emitted before', async () => {
    const source = await api.source(
      "export default { name: 'unique', dedupe: 'unique', run(e) { for (const id of e) this.$emit(id, { id }); } }",
    );
    await runNow(source, [1, 2, 2]);
    await runNow(source, [2, 3]);
    await expectEvents(source, [1, 2, 3]);
  });

  it('reports the error that it threw, and keeps the events that it emitted before', async () => {
    const source = await api.source(
      "export default { name: 'thrower', run(e) { this.$emit('before'); throw Object.assign(new Error('no luck'), { code: 'LUCK' }); } }",
    );
    const run_id = await runNow(source, { a: 1 });
    await expectEvents(source, ['before']);
    const [error] = await eventually(async () => {
      const found = await events(source, '$errors');
      expect(found).toHaveLength(1);
      return found;
    });
    expect(error).toMatchObject({
      error: { code: 'LUCK', cellId: null, message: 'no luck', stack: expect.stringContaining('Error: no luck') },
      original_event: { a: 1 },
      original_context: {
        run_id,
        workflow_id: null,
        source_id: source.id,
        source_type: 'manual',
        verified: false,
        owner_id: api.account.id,
      },
    });
    const { body } = await api.get(`/sources/${source.id}/runs`);
    expect(body.data.map(({ id }: any) => id)).toEqual([run_id]);
  });

  it('logs to a separate stream', async () => {
    const source = await api.source(
      "export default { name: 'logger', run() { console.log('hello', { a: 1 }); console.warn('careful'); } }",
    );
    await runNow(source, null);
    await eventually(async () => {
      const { body } = await api.get(`/sources/${source.id}/logs`);
      expect(body.data.map(({ event }: any) => event.level)).toEqual(['warn', 'log']);
    });
  });

  it('emits an event later if it sets a time', async () => {
    const source = await api.source(
      "export default { name: 'later', run(e) { this.$emit('late', { delivery_ts: Date.now() + 2500, id: 7 }); this.$emit('now'); } }",
    );
    await runNow(source, null);
    await expectEvents(source, ['now']);
    await expectEvents(source, ['late'], '$in');
    await expectEvents(source, ['now', 'late']);
    await expectEvents(source, [], '$in');
  });

  it('does not emit a waiting event that was deleted from $in', async () => {
    const source = await api.source(
      "export default { name: 'regretter', run(e) { for (const wait of e) this.$emit(wait, { delivery_ts: Date.now() + wait }); } }",
    );
    await runNow(source, [4000, 5000]);
    await expectEvents(source, [4000, 5000], '$in');
    const { body } = await api.get(`/sources/${source.id}/event_summaries?event_name=$in`);
    const { id } = body.data.find(({ event }: any) => event === 4000);
    expect((await api.delete(`/sources/${source.id}/events?event_name=$in&start_id=${id}&end_id=${id}`)).status).toBe(202);
    await expectEvents(source, [5000], '$in');
    await expectEvents(source, [5000]);
    await expectEvents(source, [], '$in');
  });

  it('is triggered by the events that it subscribes to', async () => {
    const emitter = await api.source("export default { name: 'emitter', run(e) { this.$emit(e); } }");
    const listener = await api.source("export default { name: 'listener', run(e) { this.$emit({ received: e }); } }");
    await api.subscribe(emitter.id, listener.id);
    await runNow(emitter, { n: 5 });
    await expectEvents(listener, [{ received: { n: 5 } }]);
  });

  it('is switched off when three consecutive runs end their process', async () => {
    const source = await api.source(
      "export default { name: 'crasher', run() { const all = []; for (;;) all.push(new Array(1e6).fill(1)); } }",
    );
    for (let n = 0; n < 3; n++) await runNow(source, n);
    await eventually(async () => expect((await api.get(`/sources/${source.id}`)).body.data.active).toBe(false), { withinMs: 60_000 });
    await eventually(async () =>
      expect((await events(source, '$errors')).map((each) => (each as { error: { code: string } }).error.code).sort()).toEqual([
        'MEMORY',
        'MEMORY',
        'MEMORY',
        'SourceSwitchedOff',
      ]),
    );
    expect((await api.post(`/sources/${source.id}/run`)).status).toBe(409);
  });

  it('ticks on a cron schedule', async () => {
    const source = await api.source(
      "export default { name: 'cron', props: { timer: { type: '$.interface.timer', default: { cron: '* * * * * *' } } }, run(e) { this.$emit(e); } }",
    );
    expect(source.configured_props.timer).toEqual({ cron: '* * * * * *', interval_seconds: null });
    await eventually(async () => expect((await events(source)).length).toBeGreaterThanOrEqual(2));
    expect((await events(source))[0]).toEqual({ timestamp: expect.any(Number), cron: '* * * * * *' });
  });
});
