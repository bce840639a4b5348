import { expect, it } from '@jest/globals';
import { defaultLimits } from '../sandbox-config.js';
import { jobOf } from '../sandbox-for-tests.js';
import { ProtocolBroken } from '../wire/guest-message.js';
import type { OutputItem } from '../wire/messages.js';
import { blocked, endByItself, type RunnerEnd, usedCpu } from './runner-end.js';
import { RunInFlight } from './runs-in-flight.js';

const COST = { bytes: 20, tokens: 5, pieces: 1, ms: 0.1 };

it('the pieces of all frames of a run are limited together, and their time is that of the run', async () => {
  const run = new RunInFlight('1', jobOf(''), { ...defaultLimits, outputPieces: 300 }, true);
  for (let n = 0; n < 3; n++) run.count({ ...COST, pieces: 100 });
  expect(() => run.count(COST)).toThrow('output in more than 300 pieces');
  run.end('killed', null, 0);
  expect((await run.settled).mainMs).toBeCloseTo(0.4);
});

const OUT_OF_MEMORY = endByItself('out of memory', 'SIGABRT');

it.each<[boolean, string, RunnerEnd, { isFirst?: boolean; overlaps?: boolean; hasBegun?: boolean }]>([
  [true, 'that blocked', blocked(1), { hasBegun: true }],
  [true, 'that used too much CPU', usedCpu(1), { hasBegun: true }],
  [false, 'that blocked before it began', blocked(1), {}],
  [false, 'that blocked while another run was in progress', blocked(1), { hasBegun: true, overlaps: true }],
  [false, 'that ran out of memory', OUT_OF_MEMORY, { hasBegun: true }],
  [true, 'that ran out of memory, as its first run', OUT_OF_MEMORY, { isFirst: true }],
  [true, 'that blocked, as its first run, before it began', blocked(1), { isFirst: true }],
])(
  'a run is the cause of the end of its process: %s for one %s',
  (isCause, _, end, { isFirst = false, overlaps = false, hasBegun = false }) => {
    const run = new RunInFlight('1', jobOf(''), defaultLimits, isFirst);
    run.overlaps = overlaps;
    if (hasBegun) run.count(COST);
    expect(run.isCauseOf(end)).toBe(isCause);
  },
);

it.each([
  ['a change of the db', ['db', 'k', '1']],
  ['a log line', ['log', 'info', 0, 'x', null]],
] as [string, OutputItem][])('%s is refused from options(), whose result it is not', (_, item) => {
  const run = new RunInFlight('1', jobOf('', { method: 'options' }), defaultLimits, true);
  run.add([['emit', '1', {}]]);
  expect(() => run.add([item])).toThrow(ProtocolBroken);
});

it('the stored keys are counted when the first of them changes, and not in a run that changes none', () => {
  let counts = 0;
  const db = new Proxy<Record<string, string>>({ a: '1' }, { ownKeys: (target) => (counts++, Reflect.ownKeys(target)) });
  const run = new RunInFlight('1', jobOf('', { db }), defaultLimits, true);
  run.add([['emit', '1', {}]]);
  expect(counts).toBe(0);
  for (const key of ['b', 'c']) run.add([['db', key, '1']]);
  expect(counts).toBe(1);
});

it.each([
  [2, 'd'],
  [4, 'e'],
])('a db of %i keys cannot have more than the limit of three or, if it has more, than that', (count, added) => {
  const db = Object.fromEntries(['a', 'b', 'c', 'd'].slice(0, count).map((key) => [key, '1']));
  const run = new RunInFlight('1', jobOf('', { db }), { ...defaultLimits, dbKeys: 3 }, true);
  run.add([
    ['db', 'a', null],
    ['db', 'c', '1'],
    ['db', 'a', '1'],
  ]);
  expect(() => run.add([['db', added, '1']])).toThrow(`more than ${Math.max(3, count)} keys in the db`);
});

it('the time in which its output is counted is that of the run', async () => {
  const run = new RunInFlight('1', jobOf('', { db: { a: '1' } }), defaultLimits, true);
  run.add([['db', 'a', '2']]);
  run.end('ok', null, 0);
  expect((await run.settled).mainMs).toBeGreaterThan(0);
});
