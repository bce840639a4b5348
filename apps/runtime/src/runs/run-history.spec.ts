import { expect, it } from '@jest/globals';
import type { RunStatus } from '../sandbox/sandbox.js';
import { runEntry, skippedEntry } from './run-history.js';

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
