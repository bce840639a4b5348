/** The maximum nesting of JSON input. Parsing has no limit, but serializing needs a stack frame per level. */
export const MAX_JSON_DEPTH = 200;

/** Whether arrays and objects are nested deeper than the maximum. */
export function nestsTooDeeply(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => nestsTooDeeply(part, levels - 1));
}
