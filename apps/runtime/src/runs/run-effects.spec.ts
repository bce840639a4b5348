import { expect, it } from '@jest/globals';
import { EVENTS_TOPIC } from '#contracts';
import type { RunOutcome } from '../sandbox/sandbox.js';
import { notKept, overQuota, runEffects } from './run-effects.js';
import type { DueRun } from './run-events.js';

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
  responded: false,
});
const effectsOf = (emits: RunOutcome['emits']) =>
  runEffects(RUN, SOURCE, { dedupe: null }, outcome(emits), {}, { counted: true, schedule: [] });
const streamsOf = (effects: ReturnType<typeof effectsOf>) => effects.records.map(({ topic, headers }) => headers?.ce_type ?? topic);

it.each(['$bogus', '$', '$in', 'a\0b'])('an emit on the stream %j is an error, and the others are kept', (name) => {
  const effects = effectsOf([{ event: '1' }, { event: '2', name }, { event: '3', name: 'mine' }]);
  expect(streamsOf(effects)).toEqual(['default', 'mine', '$errors', 'runtime.run.finished']);
  expect(JSON.parse(String(effects.records[2]?.value))).toMatchObject({ error: { code: 'BadStreamName' }, original_event: { a: 1 } });
});

it('a problem that a run has many times is reported once', () => {
  const names = [...Array.from({ length: 500 }, () => '$bogus'), 'a\0', ...Array.from({ length: 20 }, () => 'x'.repeat(129))];
  const { records } = effectsOf(names.map((name) => ({ event: '1', name })));
  const messages = records
    .filter(({ headers }) => headers?.ce_type === '$errors')
    .map(({ value }) => JSON.parse(String(value)).error.message);
  expect(messages).toEqual([expect.stringContaining('(500 times)'), expect.stringContaining('NUL'), expect.stringContaining('(20 times)')]);
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

it('each event of a run inherits its cause, shared among all of them', () => {
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

it('reports a run over quota on the stream $errors of its source', () => {
  const { topic, key, headers, value } = overQuota(RUN);
  expect({ topic, key, stream: headers?.ce_type }).toEqual({ topic: EVENTS_TOPIC, key: 'dc_1', stream: '$errors' });
  expect(JSON.parse(String(value))).toMatchObject({ error: { code: 'QuotaExceeded' } });
});
