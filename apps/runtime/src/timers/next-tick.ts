import { createHash } from 'node:crypto';
import { Cron } from 'croner';
import type { Schedule } from '#contracts';

/** Timers that were set at the same time tick up to this far apart, so that thousands of them do not tick at once. */
const SPREAD_MS = 60_000;
const SECOND_MS = 1000;

/**
 * A constant fraction of a timer, from 0 to 1: where within the second a cron expression ticks, and how much of its first interval an interval timer
 * skips.
 */
export const phaseOf = (sourceId: string, prop: string): number =>
  createHash('sha256').update(`${sourceId}.${prop}`).digest().readUInt32BE() / 2 ** 32;

/** The first tick of a timer that is set now: after an interval, less its fraction of the interval (of a minute, if the interval is longer). */
export function firstTick(schedule: Schedule, phase: number, now: Date): Date | null {
  if (schedule.cron !== null) return nextCron(schedule, phase, now);
  const interval = schedule.interval_seconds * 1000;
  return new Date(now.getTime() + interval - Math.floor(phase * Math.min(interval, SPREAD_MS)));
}

/**
 * The next tick of a timer. last: its previous tick. Ticks that were missed since then (the machine was off, or the run took longer than the interval)
 * count as one: the result is after `now`, in the same rhythm. null: the cron expression has no further tick.
 */
export function nextTick(schedule: Schedule, phase: number, last: Date, now: Date): Date | null {
  // the clock that found the tick due may be ahead of the local one; the same tick must not be returned again
  if (schedule.cron !== null) return nextCron(schedule, phase, now > last ? now : last);
  const interval = schedule.interval_seconds * 1000;
  const missed = Math.max(0, Math.floor((now.getTime() - last.getTime()) / interval));
  return new Date(last.getTime() + (missed + 1) * interval);
}

/** Within the second of the cron expression, at the timer's fraction of it. */
function nextCron({ cron, timezone }: Extract<Schedule, { cron: string }>, phase: number, after: Date): Date | null {
  const share = Math.floor(phase * SECOND_MS);
  const next = new Cron(cron, { paused: true, timezone: timezone ?? 'UTC' }).nextRun(new Date(after.getTime() - share));
  return next && new Date(next.getTime() + share);
}

/** The event that a timer passes to `run`. `timestamp`: Unix seconds. */
export const timerEvent = (schedule: Schedule, at: Date): object => ({
  timestamp: Math.floor(at.getTime() / 1000),
  ...(schedule.cron === null ? { interval_seconds: schedule.interval_seconds } : { cron: schedule.cron }),
});
