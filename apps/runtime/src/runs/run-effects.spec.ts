import { cpuSeconds } from '#testing';
import { expect, it } from '@jest/globals';
import { EVENTS_TOPIC } from '#contracts';
import type { RunOutcome } from '../sandbox/sandbox.js';
import { overQuota, sourceInactive, switchedOff } from '../run-events/error-reports.js';
import { notKept, runEffects as slicedEffects } from './run-effects.js';
import type { DueRun } from '../run-events/run-events.js';

const RUN: DueRun = { run_id: 'r', owner_id: 'u_1', source_id: 'dc_1', trigger: 'manual', event: '{"a":1}', due_at_ms: 1 };
const SOURCE = { sourceId: 'dc_1', ownerId: 'u_1', version: 3 } as const;
const outcome = (emits: RunOutcome['emits']): RunOutcome => ({
  status: 'ok',
  error: null,
  emits,
  logs: [],
  db: { n: '1' },
  wallMs: 1,
  cpuMs: 1,
  mainMs: 1,
  responded: false,
});
/** Without pauses, and how many there would have been. */
function runEffectsInSlices(...run: Parameters<typeof slicedEffects>) {
  const slices = slicedEffects(...run);
  for (let pauses = 0; ; pauses++) {
    const { done, value } = slices.next();
    if (done) return { effects: value, pauses };
  }
}
const runEffects = (...run: Parameters<typeof slicedEffects>) => runEffectsInSlices(...run).effects;
const effectsOf = (emits: RunOutcome['emits']) =>
  runEffects(RUN, SOURCE, { dedupe: null }, outcome(emits), {}, { counted: true, schedule: [] });
const streamsOf = (effects: ReturnType<typeof effectsOf>) => effects.records.map(({ topic, headers }) => headers?.ce_type ?? topic);

it.each(['$bogus', '$', '$in', 'a\0b'])('an emit on the stream %j is an error, and the others are kept', (name) => {
  const effects = effectsOf([{ event: '1' }, { event: '2', name }, { event: '3', name: 'mine' }]);
  expect(streamsOf(effects)).toEqual(['default', 'mine', '$errors', 'runtime.run.finished']);
  expect(JSON.parse(String(effects.records[2]?.value))).toMatchObject({ error: { code: 'BadStreamName' }, original_event: { a: 1 } });
});

it('a repeated run emits under the same ids what is the same, and nothing else', () => {
  const idsOf = (run: Partial<DueRun>, emits: RunOutcome['emits']) =>
    runEffects({ ...RUN, ...run }, SOURCE, { dedupe: null }, outcome(emits), {}, { counted: true, schedule: [] })
      .records.filter(({ topic }) => topic === EVENTS_TOPIC)
      .map(({ headers }) => String(headers?.ce_id));
  const due = { due_at_ms: Date.UTC(2026, 1, 3) };
  const deliveryTs = Date.now() + 3_600_000;
  const emits = [{ event: '1' }, { event: '1' }, { event: '1', name: 'mine' }, { event: '1', deliveryTs }];
  const first = idsOf(due, emits);
  expect(new Set(first).size).toBe(4);
  expect(idsOf(due, emits)).toEqual(first);
  const other = idsOf(due, [{ event: '2' }, ...emits.slice(1, 3), { event: '1', deliveryTs: deliveryTs + 1 }]);
  expect(other.map((id, n) => id === first[n])).toEqual([false, true, true, false]);
  expect(idsOf({ ...due, run_id: 'another' }, emits).filter((id) => first.includes(id))).toEqual([]);
});

it('all errors of a deployment have the same deployment id', () => {
  const { records } = effectsOf([{ event: '1', name: '$' }]);
  const errors = [records[0], overQuota(RUN, SOURCE.version), switchedOff(RUN, SOURCE.version, 'it fails')];
  expect(errors.map((each) => JSON.parse(String(each?.value)).original_context.deployment_id)).toEqual(['d_13', 'd_13', 'd_13']);
});

it('an error has the id of its run, under which the run is listed', () => {
  const error = { name: 'Error', code: 'TIMEOUT', message: 'too slow', stack: '' };
  const [failed] = runEffects(
    RUN,
    SOURCE,
    { dedupe: null },
    { ...outcome([]), status: 'timeout', error },
    {},
    { counted: true, schedule: [] },
  ).records;
  const [refused] = effectsOf([{ event: '1', name: '$' }]).records;
  const errors = [failed, refused, overQuota(RUN, 3), switchedOff(RUN, 3, 'it fails'), sourceInactive(RUN)];
  const contextOf = (each: (typeof errors)[number]) => JSON.parse(String(each?.value)).original_context;
  for (const each of errors) expect(contextOf(each).run_id).toBe(RUN.run_id);
  expect(contextOf(overQuota(RUN, 3, { isRefused: true }))).not.toHaveProperty('run_id');
});

it('a problem that a run has many times is reported once', () => {
  const names = [...Array.from({ length: 500 }, () => '$bogus'), 'a\0', ...Array.from({ length: 20 }, () => 'x'.repeat(129))];
  const { records } = effectsOf(names.map((name) => ({ event: '1', name })));
  const messages = records
    .filter(({ headers }) => headers?.ce_type === '$errors')
    .map(({ value }) => JSON.parse(String(value)).error.message);
  expect(messages).toEqual([expect.stringContaining('(500 times)'), expect.stringContaining('NUL'), expect.stringContaining('(20 times)')]);
});

it('a refused call that the component has caught is an error, and the run has succeeded and is not repeated', () => {
  const refused = { name: 'RangeError', code: null, message: '$emit: too large', stack: '' };
  const event = { ...RUN, trigger: 'event' as const };
  const source = { dedupe: null, retries: 3 };
  const effects = runEffects(
    event,
    SOURCE,
    source,
    { ...outcome([{ event: '1' }]), refused: [refused] },
    {},
    { counted: true, schedule: [1] },
  );
  expect(streamsOf(effects)).toEqual(['default', '$errors', 'runtime.run.finished']);
  expect(effects).toMatchObject({ entry: { status: 'succeeded', error: null }, attempt: null });
});

it('errors and logs of a run have as many hops as its emits', () => {
  const { records } = runEffects(
    { ...RUN, hops: 4 },
    SOURCE,
    { dedupe: null },
    { ...outcome([{ event: '1', name: '$' }]), logs: [{ level: 'log', ts: 1, message: 'm' }] },
    {},
    { counted: false, schedule: [] },
  );
  expect(records.map(({ headers }) => headers?.ce_hops)).toEqual(['5', '5', undefined]);
});

it('each event of a run inherits its cause, shared among those of its kind', () => {
  const logs = Array.from({ length: 10 }, () => ({ level: 'log' as const, ts: 1, message: 'm' }));
  const error = { name: 'Error', code: null, message: 'm', stack: '' };
  const { records } = runEffects(
    { ...RUN, cause: { root: 'tick', spread: 100 } },
    SOURCE,
    { dedupe: null },
    { ...outcome([{ event: '1' }, { event: '2', name: 'x' }]), logs, error },
    {},
    { counted: false, schedule: [] },
  );
  const spreads = new Map(records.map(({ headers }) => [headers?.ce_type, headers?.ce_sluicespread]));
  expect(spreads).toEqual(
    new Map([
      ['default', '200'],
      ['x', '200'],
      ['$logs', '1000'],
      ['$errors', '100'],
      [undefined, undefined],
    ]),
  );
});

it('a run with many emits multiplies the events of its cause', () => {
  const emits = Array.from({ length: 200 }, () => ({ event: '1' }));
  const causes = (run: Partial<typeof RUN> & { cause?: { root: string; spread: number } }) => {
    const { records } = runEffects({ ...RUN, ...run }, SOURCE, { dedupe: null }, outcome(emits), {}, { counted: false, schedule: [] });
    return new Set(records.slice(0, 200).map(({ headers }) => `${headers?.ce_sluiceroot} ${headers?.ce_sluicespread}`));
  };
  expect(causes({})).toEqual(new Set([`${RUN.run_id} 200`]));
  expect(causes({ cause: { root: 'tick', spread: 200 } })).toEqual(new Set(['tick 40000']));
});

it('instead of what the database refuses there is an error, and the run has ended', () => {
  const refused = runEffects(RUN, SOURCE, { dedupe: null }, notKept(outcome([{ event: '1' }])), {}, { counted: true, schedule: [] });
  expect(streamsOf(refused)).toEqual(['$errors', 'runtime.run.finished']);
  expect(refused).toMatchObject({ db: {}, dedupe: null, waiting: [], usage: { account_id: 'u_1' } });
  expect(refused.records[0]?.topic).toBe(EVENTS_TOPIC);
});

it.each([
  ['as text', Buffer.from('{"b":2}'), { a: 1, bodyRaw: '{"b":2}', body: { $truncated: true } }],
  ['in base64', Buffer.from([255]), { a: 1, bodyRaw: '/w==', bodyBase64: true, body: { $truncated: true } }],
  ['not at all if it is too large', Buffer.alloc(600_000, 'x'), { $truncated: true }],
  ['not at all if its JSON is too large', Buffer.alloc(300_000, '"'), { $truncated: true }],
])('an error contains a large body of a request %s', (_, body, expected) => {
  const { value } = overQuota({ ...RUN, http_body: body.toString('base64') }, SOURCE.version);
  expect(JSON.parse(String(value)).original_event).toEqual(expected);
});

it('many errors with a large event take little time', async () => {
  const event = JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n.toString(36)}`, 0])));
  const emits = Array.from({ length: 400 }, (_, n) => ({ event: '1', name: `$${n}` }));
  const effects = () => runEffects({ ...RUN, event }, SOURCE, { dedupe: null }, outcome(emits), {}, { counted: true, schedule: [] });
  // parsing the event for each of them takes 20 s
  expect(await cpuSeconds(effects)).toBeLessThan(2);
});

it.each<[string, Partial<RunOutcome>, number]>([
  ['small emits', { emits: Array.from({ length: 100 }, () => ({ event: '1' })) }, 0],
  ['one large emit', { emits: [{ event: `"${'x'.repeat(900_000)}"` }] }, 0],
  ['megabytes of emits', { emits: Array.from({ length: 1000 }, (_, n) => ({ event: `"${String(n).padStart(8000)}"` })) }, 100],
  ['thousands of small emits', { emits: Array.from({ length: 3000 }, (_, n) => ({ event: String(n) })) }, 5],
  [
    'megabytes of emits that wait',
    { emits: Array.from({ length: 1000 }, () => ({ event: `"${'x'.repeat(8000)}"`, deliveryTs: Date.now() + 1e6 })) },
    100,
  ],
  ['megabytes of logs', { logs: Array.from({ length: 500 }, () => ({ level: 'log', ts: 1, message: 'x'.repeat(16_000) })) }, 90],
  [
    'large errors',
    { refused: Array.from({ length: 20 }, () => ({ name: 'Error', code: null, message: 'x'.repeat(100_000), stack: '' })) },
    19,
  ],
])('pauses while it prepares the events of a run with %s', (_, some, atLeast) => {
  const whole = { ...outcome([]), ...some };
  const { effects, pauses } = runEffectsInSlices(RUN, SOURCE, { dedupe: null }, whole, {}, { counted: true, schedule: [] });
  expect(pauses).toBeGreaterThanOrEqual(atLeast);
  if (atLeast === 0) expect(pauses).toBe(0);
  const values = effects.records.filter(({ topic }) => topic === EVENTS_TOPIC).map(({ value }) => String(value));
  if (whole.emits.length > 0) expect(values).toEqual(whole.emits.map(({ event }) => event));
  expect(values).toHaveLength(whole.emits.length + whole.logs.length + (whole.refused ?? []).length);
});

it('reports a run over quota on the stream $errors of its source', () => {
  const { topic, key, headers, value } = overQuota(RUN, SOURCE.version);
  expect({ topic, key, stream: headers?.ce_type }).toEqual({ topic: EVENTS_TOPIC, key: 'dc_1', stream: '$errors' });
  expect(JSON.parse(String(value))).toMatchObject({ error: { code: 'QuotaExceeded' } });
});

it.each<[number, string]>([
  [1, '1 run was accepted, but had not begun when the source was switched off or its account suspended'],
  [
    51,
    'up to 51 runs were accepted, but had not begun when the source was switched off or its account suspended; this is the newest of them',
  ],
])('reports %i runs of an inactive source with the event of the newest', (count, message) => {
  const { key, headers, value, account } = sourceInactive(RUN, count);
  expect([key, headers?.ce_type, headers?.ce_id, account]).toEqual(['dc_1', '$errors', 'r', 'u_1']);
  expect(JSON.parse(String(value))).toMatchObject({
    error: { code: 'SourceInactive', message },
    original_event: { a: 1 },
    original_context: { deployment_id: 'd_1', source_type: 'manual' },
  });
});
