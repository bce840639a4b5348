import { Invalid } from '#contracts';

const ISO_8601 = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/;

/** The time in ms. Throws Invalid. */
export function sinceMs(text: string): number {
  const ms = /^\d{1,12}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : ISO_8601.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(ms)) throw new Invalid([{ field: 'since', message: `since must be ISO 8601 or Unix seconds, not "${text}"` }]);
  return Math.floor(ms);
}
