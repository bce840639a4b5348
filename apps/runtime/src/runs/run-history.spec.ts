import { cpuSeconds } from '#testing';
import { expect, it } from '@jest/globals';
import type { RunStatus } from '../sandbox/sandbox.js';
import { errorLine, runEntry, skippedEntry } from './run-effects.js';

const RUN = { trigger: 'timer' as const };
const NOW = 1_700_000_000_000;

it.each<[RunStatus, string]>([
  ['ok', 'succeeded'],
  ['threw', 'failed'],
  ['timeout', 'timed_out'],
  ['memory', 'killed'],
  ['crashed', 'killed'],
  ['killed', 'killed'],
])('lists a run that ended as %s as %s', (status, listed) => {
  expect(runEntry(RUN, { status, error: null, wallMs: 20.2 }, 3, NOW)).toEqual({
    ...{ trigger: 'timer', method: 'run', status: listed, started_at: new Date(NOW - 20.2), duration_ms: 21, emitted: 3, error: null },
  });
});

it('keeps the beginning of a long error', () => {
  const error = { name: 'E', code: null, message: 'm'.repeat(5000), stack: `${'s'.repeat(3999)}💧` };
  const kept = JSON.parse(runEntry(RUN, { status: 'threw', error, wallMs: 1 }, 0, NOW).error ?? '') as typeof error;
  expect([kept.name, kept.message.length, kept.stack.length]).toEqual(['E', 1000, 4000]);
  expect(kept.stack.isWellFormed()).toBe(true);
});

it('names the hook and the reason of a run that was skipped', () => {
  const hook = { method: 'activate' as const, version: 1, deployment: {} as never, final: false };
  expect(skippedEntry({ trigger: 'hook', hook }, 'over quota', NOW)).toMatchObject({ method: 'activate', status: 'skipped' });
});

it.each<[string, string, object]>([
  [
    'in a function of the component',
    'TypeError: x is not a function\n    at Object.run (my-component.js:3:15)\n    at main (runner.js:1:1)',
    { at: 'my-component.js:3:15' },
  ],
  ['in an anonymous function', 'TypeError: x is not a function\n    at my-component.js:7:2', { at: 'my-component.js:7:2' }],
  ['without a stack', '', {}],
])('the error of a run thrown %s is logged by its name, because its message may contain secrets', (_, stack, where) => {
  expect(errorLine({ name: 'TypeError', stack })).toEqual({ error: 'TypeError', ...where });
});

it.each(['a', ':1', '\n', ' ', '(', 'a:1:', '\n at '])(
  'a stack of the longest length that repeats "%s" is read in linear time',
  async (part) => {
    const stack = ` at ${part.repeat(1_000_000 / part.length)}x`;
    const line = (stack: string) => errorLine({ name: 'E', stack });
    // this thread serves every account
    expect(await cpuSeconds(() => [line(stack), line(stack.trim())])).toBeLessThan(2);
  },
);
