import { expect, it } from '@jest/globals';
import type { PropDefinition, RunJob, Sandbox } from '../sandbox/sandbox.js';
import { type LocalRunOptions, runComponent } from './run-component.js';

const TIMER: PropDefinition = { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 5 } };
const COUNT: PropDefinition = { name: 'count', type: 'integer' };

/** The jobs that the sandbox gets for a component with these props and hooks. */
async function jobs(props: PropDefinition[], options: Partial<LocalRunOptions> = {}): Promise<RunJob[]> {
  const given: RunJob[] = [];
  const outcome = { status: 'ok', error: null, emits: [], logs: [], db: {}, wallMs: 1, cpuMs: 1, mainMs: 1, responded: false };
  const sandbox = { run: async (job: RunJob) => (given.push(job), outcome) } as unknown as Sandbox;
  const description = { configurable_props: props, hooks: ['deploy', 'deactivate'], dedupe: null, concurrency: 1 };
  const all = { props: [], events: [], headers: [], hooks: false, state: { db: {}, dedupe: {} }, ...options } as unknown as LocalRunOptions;
  for await (const _ of runComponent(sandbox, { ok: true, component: { hash: 'h', code: '' }, description } as never, all));
  return given;
}

it('a component with a timer runs for a tick, one without for the given events, in order', async () => {
  const [tick] = await jobs([TIMER]);
  expect(JSON.parse(tick!.event!)).toMatchObject({ interval_seconds: 5 });
  expect((await jobs([], { events: ['1', '{"n":2}'] })).map(({ event }) => event)).toEqual(['1', '{"n":2}']);
});

it.each<[string, unknown, string[], object, object]>([
  ['its default', { intervalSeconds: 5 }, [], { intervalSeconds: 5, interval_seconds: 5, cron: null }, { interval_seconds: 5 }],
  [
    'a value',
    { intervalSeconds: 5 },
    ['timer={"interval_seconds":7}'],
    { intervalSeconds: 7, interval_seconds: 7, cron: null },
    { interval_seconds: 7 },
  ],
  [
    'a cron expression',
    undefined,
    ['timer={"cron":"0 9 * * 1","timezone":"Europe/Berlin"}'],
    { intervalSeconds: null, interval_seconds: null, cron: '0 9 * * 1', timezone: 'Europe/Berlin' },
    { cron: '0 9 * * 1' },
  ],
  ['none', undefined, [], { intervalSeconds: 60, interval_seconds: 60, cron: null }, { interval_seconds: 60 }],
])('a timer with %s has the members that it has in a deployed source, and so has its tick', async (_, value, props, timer, tick) => {
  const [run] = await jobs([{ ...TIMER, default: value }], { props });
  expect(run!.props).toEqual({ timer });
  expect(JSON.parse(run!.event!)).toEqual({ timestamp: expect.any(Number), ...tick });
});

it('an optional timer without a value is absent', async () => {
  const [run] = await jobs([{ ...TIMER, default: undefined, optional: true }]);
  expect({ props: run!.props, event: run!.event }).toEqual({ props: {}, event: '{}' });
});

it('a component without a timer gets the event that `sluice run` sends', async () => {
  expect((await jobs([])).map(({ event }) => event)).toEqual(['{}']);
});

it('a request has the given headers, and one without a colon is refused', async () => {
  const [run] = await jobs([], { request: 'x', headers: ['X-A: 1:2', 'x-b:'] });
  expect(JSON.parse(run!.event!)).toMatchObject({ headers: { 'x-a': '1:2', 'x-b': '' } });
  for (const header of ['foo', ': foo'])
    await expect(jobs([], { request: 'x', headers: [header] })).rejects.toThrow(`a header is written name: value, not ${header}`);
});

/** The runs of a component that emits this, and what it throws after its run. */
async function runs(emits: object[], late?: Error) {
  const run = async ({ onLateError }: RunJob) => {
    if (late) setTimeout(() => onLateError!({ name: late.name, message: late.message, stack: '' } as never), 10);
    return { status: 'ok', error: null, emits, logs: [], db: {}, wallMs: 1, cpuMs: 1, mainMs: 1, responded: false };
  };
  const description = { configurable_props: [], hooks: [], dedupe: null, concurrency: 1 };
  const all = { props: [], events: [], headers: [], hooks: false, state: { db: {}, dedupe: {} } } as unknown as LocalRunOptions;
  const ended = [];
  for await (const each of runComponent({ run } as never, { ok: true, component: { hash: 'h', code: '' }, description } as never, all))
    ended.push(each);
  return ended;
}

it('emits that a deployed source refuses are dropped, with the reason', async () => {
  const [run] = await runs([{ event: '1' }, { event: '2', name: '$x' }, { event: '3', deliveryTs: Date.now() + 400 * 86_400_000 }]);
  expect(run!.emits).toEqual([{ event: '1' }]);
  expect(run!.dropped.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('$emit: '),
    'delivery_ts must be at most one year ahead',
  ]);
});

it('an error of code that continues after the run is reported', async () => {
  await expect(runs([], new Error('$emit after the run has ended'))).rejects.toThrow('after the run: Error: $emit after the run has ended');
});

it('its hooks run around its runs, if the caller wants them', async () => {
  const run = await jobs([TIMER], { hooks: true });
  expect(run.map(({ method }) => method)).toEqual(['deploy', 'run', 'deactivate']);
});

it('props are passed with the types that the component declares', async () => {
  const [run] = await jobs([TIMER, COUNT], { props: ['count=3'] });
  expect(run!.props).toMatchObject({ count: 3 });
});

it.each<[string, PropDefinition[], Partial<LocalRunOptions>, string]>([
  ['an event that is not JSON', [], { events: ['{'] }, '--event is not JSON'],
  [
    'a prop that the component does not have',
    [TIMER],
    { props: ['cuont=3'] },
    '--prop cuont: the component has no such prop; it has timer',
  ],
  ['a prop of another type', [TIMER, COUNT], { props: ['count=x'] }, '--prop count: the value must be of type integer'],
  ['a timer that is not an object', [TIMER], { props: ['timer=5'] }, '--prop timer: the value must be of type $.interface.timer'],
  ['a required prop that is missing', [TIMER, COUNT], {}, 'the prop count is required: --prop count=…'],
  ['a missing one that is named like a member of every object', [{ ...COUNT, name: 'valueOf' }], {}, 'the prop valueOf is required'],
])('%s is a mistake of the caller, explained in one line', async (_, props, options, message) => {
  await expect(jobs(props, options)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(message) });
});
