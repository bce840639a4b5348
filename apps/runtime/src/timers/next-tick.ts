import { createHash } from 'node:crypto';
import { type Schedule, unixSeconds } from '#contracts';
import { nextCron } from '#schedules';

/** Timers that were set at the same time tick up to this far apart, so that thousands of them do not tick at once. */
const SPREAD_MS = 60_000;
const SECOND_MS = 1000;
/** A tick is not later than this: neither a Date nor the database can represent the next tick of a very long interval. */
const LAST_TICK_MS = Date.UTC(10_000, 0);

/**
 * A constant fraction of a timer, from 0 to 1: where within the second a cron expression ticks, and how much of its first interval an interval timer
 * skips.
 */
export const phaseOf = (sourceId: string, prop: string): number =>
  createHash('sha256').update(`${sourceId}.${prop}`).digest().readUInt32BE() / 2 ** 32;

/** The first tick of a timer that is set now: after an interval, less its fraction of the interval (of a minute, if the interval is longer). null: it never ticks. */
export function firstTick(schedule: Schedule, phase: number, now: Date): Date | null {
  if (schedule.cron !== null) return nextCronTick(schedule, phase, now);
  const interval = schedule.interval_seconds * 1000;
  return tickAt(now.getTime() + interval - Math.floor(phase * Math.min(interval, SPREAD_MS)));
}

/**
 * The next tick of a timer, after `now` and in the same rhythm. Ticks that were missed since the last one (the machine was off, or the run took longer
 * than the interval) count as one. Returns null if the timer never ticks again.
 *
 * @param last its previous tick
 */
export function nextTick(schedule: Schedule, phase: number, last: Date, now: Date): Date | null {
  // the clock may have been set back; the same tick must not be returned again
  if (schedule.cron !== null) return nextCronTick(schedule, phase, now > last ? now : last);
  const interval = schedule.interval_seconds * 1000;
  const missed = Math.max(0, Math.floor((now.getTime() - last.getTime()) / interval));
  return tickAt(last.getTime() + (missed + 1) * interval);
}

const tickAt = (ms: number): Date | null => (ms < LAST_TICK_MS ? new Date(ms) : null);

/** Within the second of the cron expression, at the timer's fraction of it. An invalid one never ticks: it must not keep the other timers from ticking. */
function nextCronTick({ cron, timezone }: Extract<Schedule, { cron: string }>, phase: number, after: Date): Date | null {
  const share = Math.floor(phase * SECOND_MS);
  try {
    const next = nextCron(cron, timezone, new Date(after.getTime() - share));
    return next && new Date(next.getTime() + share);
  } catch {
    return null;
  }
}

/** The event that a timer passes to `run`. `timestamp`: Unix seconds. */
export const timerEvent = (schedule: Schedule, at: Date): object => ({
  timestamp: unixSeconds(at),
  ...(schedule.cron === null ? { interval_seconds: schedule.interval_seconds } : { cron: schedule.cron }),
});

/** The schedule of a timer as users write it (`{intervalSeconds}`, `{cron, timezone}`) or as responses show it; undefined if the value is neither. */
export function scheduleOf(value: unknown): Schedule | undefined {
  const { intervalSeconds, interval_seconds, cron, timezone } = (value ?? {}) as Record<string, unknown>;
  if (typeof cron === 'string' && cron !== '')
    return { interval_seconds: null, cron, ...(typeof timezone === 'string' && timezone && { timezone }) };
  const seconds = intervalSeconds ?? interval_seconds;
  return typeof seconds === 'number' ? { interval_seconds: seconds, cron: null } : undefined;
}

/** The value of a timer in `this`. */
export const timerValue = (schedule: Schedule): object => ({ intervalSeconds: schedule.interval_seconds, ...schedule });

/** The event of a run that was requested without one: a tick, or an empty object if the source has no timer. */
export const requestedEvent = (schedule: Schedule | undefined): string => JSON.stringify(schedule ? timerEvent(schedule, new Date()) : {});
