import { Cron } from 'croner';
import type { Schedule } from '#contracts';

/**
 * When a timer ticks next. last: its tick before, or when it was set. The ticks that were missed since then (the
 * machine was off) count as one: the answer is after `now`, on the same rhythm. null: a cron expression that never comes again.
 */
export function nextTick(schedule: Schedule, last: Date, now: Date): Date | null {
  if (schedule.cron !== null) return new Cron(schedule.cron, { paused: true, timezone: schedule.timezone ?? 'UTC' }).nextRun(now);
  const interval = schedule.interval_seconds * 1000;
  const missed = Math.max(0, Math.floor((now.getTime() - last.getTime()) / interval));
  return new Date(last.getTime() + (missed + 1) * interval);
}
