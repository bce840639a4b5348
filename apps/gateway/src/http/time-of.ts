const UNIX_SECONDS = /^(?:0|[1-9]\d{0,11})(?:\.\d+)?$/;
/** A year, or a date without hyphens: as seconds, they would be a time in 1970. */
const DIGITS_OF_DATE = /^(?:19|20)\d\d(?:\d{4})?$/;
const ISO_8601 = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?)?$/;

/** The form of a time, for messages. */
export const TIME = 'a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds';

/** The problem of a field whose value must be `form`: the end of its message. */
export const problemWith = (value: unknown, form: string): string =>
  value === undefined || value === null ? `is required: ${form}` : `must be ${form}, not ${JSON.stringify(value).slice(0, 100)}`;

/** The time in ms: of Unix seconds, or of ISO 8601, which is in UTC unless it names another zone. Undefined if the text is neither, or is ambiguous: digits that may be a date. */
export function timeOf(text: string): number | undefined {
  if (DIGITS_OF_DATE.test(text)) return undefined;
  if (UNIX_SECONDS.test(text)) return Math.floor(Number(text) * 1000);
  const [, day = '', time = '00:00', zone = 'Z'] = ISO_8601.exec(text) ?? [];
  // without a zone, JavaScript would use that of this machine
  const ms = isDay(day) ? Date.parse(`${day}T${time}${zone}`) : NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** JavaScript reads 31 February as 3 March. */
const isDay = (text: string): boolean => new Date(text).toJSON()?.startsWith(`${text}T`) === true;
