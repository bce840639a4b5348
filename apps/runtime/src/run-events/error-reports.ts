import { EVENTS_TOPIC, type RunRequest } from '#contracts';
import type { AccountRecord } from '#outbox';
import type { RunError } from '../sandbox/sandbox.js';
import { type DueRun, errorRecord } from './run-events.js';

/** An error of Sluice itself. */
export const plainError = (code: string, message: string): RunError => ({ name: code, code, message, stack: `${code}: ${message}` });

const QUOTA_EXCEEDED = plainError('QuotaExceeded', "the account's daily quota is used up; the source will run again from 00:00 UTC");

/**
 * The event on `$errors` of a run that was skipped because of the account's quota.
 *
 * @param isRefused the request was refused, so the run is not listed as skipped
 */
export const overQuota = (run: DueRun, version: number, { isRefused = false } = {}): AccountRecord =>
  report(run, QUOTA_EXCEEDED, { version, isRefused });

/** The event on `$errors` of a source that is about to be switched off because its runs keep ending their processes. */
export const switchedOff = (run: DueRun, version: number, reason: string): AccountRecord =>
  report(run, plainError('SourceSwitchedOff', `the source is switched off: ${reason}; enable it again when its component is fixed`), {
    version,
  });

/** Whether a caller or an event expects the run. A timer that is switched off misses nothing. */
export const isMissed = ({ trigger }: Pick<RunRequest, 'trigger'>): boolean => trigger !== 'timer';

/**
 * The event on `$errors` of runs that are not executed because their source is not active. If they come again, it has the same emit id.
 *
 * @param run the newest of them
 * @param count at most this number has not begun
 */
export function sourceInactive(run: RunRequest, count = 1): AccountRecord {
  const runs = count === 1 ? '1 run was' : `up to ${count} runs were`;
  const which = count === 1 ? '' : '; this is the newest of them';
  const message = `${runs} accepted, but had not begun when the source was switched off or its account suspended${which}`;
  return report({ ...run, event: run.event ?? 'null' }, plainError('SourceInactive', message), { emitId: run.run_id });
}

const report = (run: DueRun, error: RunError, more: { version?: number; emitId?: string; isRefused?: boolean }): AccountRecord => ({
  topic: EVENTS_TOPIC,
  ...errorRecord(run, error, more),
  account: run.owner_id,
});
