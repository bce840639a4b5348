import { describe, expect, it } from '@jest/globals';
import type { RunRequest } from '#contracts';
import type { RunStatus } from '../sandbox/sandbox.js';
import { endedAttempt } from './next-attempt.js';

const FIRST: RunRequest = { run_id: 'event-1', owner_id: 'u_1', source_id: 'dc_1', trigger: 'event', event: '{}', due_at_ms: 1, hops: 2 };
const attempt = (n: number): RunRequest => ({ ...FIRST, run_id: `event-1~${n}`, retry: { first_run_id: 'event-1', attempt: n } });
const ended = (run: RunRequest, retries: number | 'schedule' | undefined, status: RunStatus = 'threw') =>
  endedAttempt(run, { retries }, status, { schedule: [1000, 60_000, 3_600_000], now: 5000, random: 0.5 });
const over = { firstRunId: 'event-1', sourceId: 'dc_1', next: null };

describe('a run for an event that has failed', () => {
  it('is repeated after the pauses of the schedule, with the same event', () => {
    expect(ended(FIRST, 'schedule')).toEqual({ ...over, next: { ...attempt(2), due_at_ms: 6000 } });
    expect(ended(attempt(2), 'schedule')).toEqual({ ...over, next: { ...attempt(3), due_at_ms: 65_000 } });
    expect(ended(attempt(3), 'schedule')).toEqual({ ...over, next: { ...attempt(4), due_at_ms: 3_605_000 } });
  });

  it.each<RunStatus>(['threw', 'timeout', 'memory', 'crashed', 'killed'])('is repeated whatever its failure is: %s', (status) => {
    expect(ended(FIRST, 1, status)?.next?.run_id).toBe('event-1~2');
  });

  it('is repeated as often as its component allows, and as the schedule does', () => {
    expect(ended(FIRST, undefined)).toBeNull();
    expect(ended(attempt(2), 1)).toEqual(over);
    expect(ended(attempt(2), 2)?.next).not.toBeNull();
    expect(ended(attempt(4), 'schedule')).toEqual(over);
    expect(ended(attempt(4), 100)).toEqual(over);
  });

  it('is not repeated by a new version of the component that does not allow it', () => {
    expect(ended(attempt(2), undefined)).toEqual(over);
  });
});

it('a run that has succeeded has no further attempt', () => {
  expect(ended(FIRST, 'schedule', 'ok')).toBeNull();
  expect(ended(attempt(2), 'schedule', 'ok')).toEqual(over);
});

it.each(['timer', 'http', 'manual', 'hook'] as const)('a failed run of the trigger "%s" is not repeated', (trigger) => {
  expect(ended({ ...FIRST, trigger }, 'schedule')).toBeNull();
});
