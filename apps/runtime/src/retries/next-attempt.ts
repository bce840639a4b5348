import type { RunRequest } from '#contracts';
import { retryPause } from '#retries';
import type { ComponentDescription, RunStatus } from '../sandbox/sandbox.js';
import type { EndedAttempt } from './retried-runs.repository.js';

/** The id of a further attempt; `attempt` counts from 2. */
export const attemptId = (firstRunId: string, attempt: number): string => `${firstRunId}~${attempt}`;

/** How often a component's failed runs are repeated. */
const retriesOf = ({ retries = 0 }: Pick<ComponentDescription, 'retries'>): number => (retries === 'schedule' ? Infinity : retries);

/**
 * Whether a run has a further attempt, and when. Only runs for events are repeated, because only they are deliveries: the next tick of a timer is its
 * repetition, and the sender of a request repeats it. null: nothing is stored about its attempts.
 *
 * @param random from 0 to 1
 */
export function endedAttempt(
  run: RunRequest,
  component: Pick<ComponentDescription, 'retries'>,
  status: RunStatus,
  { schedule, now, random }: { schedule: readonly number[]; now: number; random: number },
): EndedAttempt | null {
  const { first_run_id, attempt } = run.retry ?? { first_run_id: run.run_id, attempt: 1 };
  const repeats = run.trigger === 'event' && status !== 'ok' && attempt <= retriesOf(component);
  const pause = repeats ? retryPause(schedule, attempt, random) : null;
  if (pause === null && !run.retry) return null;
  const next = pause === null ? null : nextOf(run, { first_run_id, attempt: attempt + 1 }, now + pause);
  return { firstRunId: first_run_id, sourceId: run.source_id, next };
}

const nextOf = (run: RunRequest, retry: NonNullable<RunRequest['retry']>, due_at_ms: number): RunRequest => ({
  ...run,
  run_id: attemptId(retry.first_run_id, retry.attempt),
  due_at_ms,
  retry,
});
