import { Cron } from 'croner';

/** In characters; longer than each minute of an hour as a list. */
export const CRON_LENGTH = 256;
const TIME_ZONE_LENGTH = 64;
/** Of a source. To find the next time of each takes up to a millisecond, while others wait. */
export const MAX_TIMERS = 20;
/** From one 29 February on a certain weekday to the next one, when a century without a leap year is between them. */
const SEARCHED_YEARS = 40;

/**
 * The first time after `after` that a cron expression matches. It has five fields, or six with seconds. null: not within 40 years.
 *
 * The expression comes from a stranger, and this runs while others wait: its length is limited before it is parsed, and the years are limited because a
 * search for a date that does not exist would take seconds.
 *
 * @param timezone a name of the IANA database in any case, or an offset such as `+05:30`; null: UTC
 * @throws Error with the reason, for an expression or a time zone that is invalid
 */
export function nextCron(cron: string, timezone: string | null | undefined, after: Date): Date | null {
  if (cron.length > CRON_LENGTH) throw new Error(`a cron expression has at most ${CRON_LENGTH} characters`);
  if (timezone && timezone.length > TIME_ZONE_LENGTH) throw new Error(`a time zone has at most ${TIME_ZONE_LENGTH} characters`);
  const fields = (NICKNAMES.get(cron.trim().toLowerCase()) ?? cron).trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6) throw new Error('a cron expression has five fields, or six with seconds');
  const year = after.getUTCFullYear();
  const years = `${Math.max(year - 1, 1)}-${Math.min(year + SEARCHED_YEARS, 9999)}`;
  const pattern = [...(fields.length === 5 ? ['0'] : []), ...fields, years].join(' ');
  const zone = zoneOf(timezone || 'UTC');
  // sloppy: `0/15` means `0-59/15`, as in Quartz. When clocks change, times without a wildcard or a step come once, as in cron
  const options = { paused: true, timezone: zone.name, sloppyRanges: true, fixedTimeRule: 'no-wildcard' } as const;
  const next = new Cron(pattern, options).nextRun(new Date(after.getTime() + zone.aheadMs));
  return next && new Date(next.getTime() - zone.aheadMs);
}

/** `+05:30`, `+0530` or `+05`; with either of the signs that Intl knows as a minus. */
const OFFSET = /^([+\-\u2212])([01]\d|2[0-3])(?::?([0-5]\d))?$/;

/**
 * croner keeps 32 KB for each text of a time zone that it has seen, for as long as the process runs: it gets each of the 600 names in one spelling only, and
 * no offsets, of which there are thousands.
 */
function zoneOf(timezone: string): { name: string; aheadMs: number } {
  const [, sign, hours, minutes = '0'] = OFFSET.exec(timezone) ?? [];
  if (!sign) return { name: timezone.toLowerCase(), aheadMs: 0 };
  return { name: 'utc', aheadMs: (Number(hours) * 60 + Number(minutes)) * (sign === '+' ? 60_000 : -60_000) };
}

const NICKNAMES = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);
