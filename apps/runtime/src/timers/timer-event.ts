import type { Schedule } from '#contracts';

/** What `run` gets from a timer. `timestamp`: Unix seconds. */
export const timerEvent = (schedule: Schedule, at: Date): object => ({
  timestamp: Math.floor(at.getTime() / 1000),
  ...(schedule.cron === null ? { interval_seconds: schedule.interval_seconds } : { cron: schedule.cron }),
});
