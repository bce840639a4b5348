import { createHash } from 'node:crypto';
import { Cron } from 'croner';
import type { Schedule } from '#contracts';

/** Two timers that were set together tick apart by up to this much, so that thousands of them do not tick in one moment. */
const SPREAD_MS = 60_000;
const SECOND_MS = 1000;

/**
 * A timer's own share of a moment, from 0 to 1 and always the same: where in the second a cron expression ticks, and how much of its first
 * interval a timer leaves out.
 */
export const phaseOf = (sourceId: string, prop: string): number =>
  createHash('sha256').update(`${sourceId}.${prop}`).digest().readUInt32BE() / 2 ** 32;

/** When a timer that is set now ticks first: after an interval, less its share of it (of a minute, when it is longer). */
export function firstTick(schedule: Schedule, phase: number, now: Date): Date | null {
  if (schedule.cron !== null) return nextCron(schedule, phase, now);
  const interval = schedule.interval_seconds * 1000;
  return new Date(now.getTime() + interval - Math.floor(phase * Math.min(interval, SPREAD_MS)));
}

/**
 * When a timer ticks next. last: its tick before. The ticks that were missed since then (the machine was off, or the run took longer than the
 * interval) count as one: the result is after `now`, on the same rhythm. null: a cron expression that never comes again.
 */
export function nextTick(schedule: Schedule, phase: number, last: Date, now: Date): Date | null {
  // the clock that found the tick due may be ahead of the local one: the same tick must not come again
  if (schedule.cron !== null) return nextCron(schedule, phase, now > last ? now : last);
  const interval = schedule.interval_seconds * 1000;
  const missed = Math.max(0, Math.floor((now.getTime() - last.getTime()) / interval));
  return new Date(last.getTime() + (missed + 1) * interval);
}

/** In the second that the expression says, at the timer's share of it. */
function nextCron({ cron, timezone }: Extract<Schedule, { cron: string }>, phase: number, after: Date): Date | null {
  const share = Math.floor(phase * SECOND_MS);
  const next = new Cron(cron, { paused: true, timezone: timezone ?? 'UTC' }).nextRun(new Date(after.getTime() - share));
  return next && new Date(next.getTime() + share);
}

/** What `run` gets from a timer. `timestamp`: Unix seconds. */
export const timerEvent = (schedule: Schedule, at: Date): object => ({
  timestamp: Math.floor(at.getTime() / 1000),
  ...(schedule.cron === null ? { interval_seconds: schedule.interval_seconds } : { cron: schedule.cron }),
});
