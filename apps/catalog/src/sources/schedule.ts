import { Cron } from 'croner';
import type { Schedule } from '#contracts';

/** Parses a timer's value as users write it (`{intervalSeconds}`, `{cron, timezone}`) or as responses show it (`{cron, interval_seconds}`). Returns a
 * sentence if it is neither. */
export function readSchedule(value: unknown, minSeconds: number): Schedule | string {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return 'must be an object with intervalSeconds or cron';
  const { intervalSeconds, interval_seconds, cron, timezone } = value as Record<string, unknown>;
  const seconds = intervalSeconds ?? interval_seconds ?? undefined;
  if (typeof cron === 'string' && cron !== '') {
    if (seconds !== undefined) return 'must have intervalSeconds or cron, not both';
    return readCron(cron, timezone);
  }
  if (cron !== undefined && cron !== null && cron !== '') return 'must have a string as cron, such as "0 9 * * 1-5"';
  if (seconds === undefined) return 'must be an object with intervalSeconds or cron';
  if (!Number.isSafeInteger(seconds)) return 'must have an integer as intervalSeconds';
  if ((seconds as number) < minSeconds) return `must have an intervalSeconds of at least ${minSeconds}`;
  return { interval_seconds: seconds as number, cron: null };
}

function readCron(cron: string, timezone: unknown): Schedule | string {
  if (timezone !== undefined && timezone !== null && typeof timezone !== 'string')
    return 'must have a string as timezone, such as "Europe/Berlin"';
  try {
    const next = new Cron(cron, { paused: true, timezone: timezone ?? 'UTC' }).nextRun();
    if (!next) return `has a cron expression that never matches: ${cron}`;
  } catch (error) {
    return `has an invalid cron expression or timezone; valid are, for example, "0 9 * * 1-5" and "Europe/Berlin" (${(error as Error).message})`;
  }
  return { interval_seconds: null, cron, ...(timezone ? { timezone: timezone } : {}) };
}
