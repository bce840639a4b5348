type Values = Record<string, unknown>;

/** In the value of an `app` prop: the id of a connection. */
export const CONNECTION_ID = 'authProvisionId';
/** In the value of an `app` prop: the credentials. */
export const AUTH = '$auth';

/** Responses show it instead of a secret. If it is sent back, the value is kept. */
export const MASK = '••••••••';

/** The sent values with the stored ones in place of masks, and the names of the masks for which nothing is stored. */
export function unmasked(sent: Values, stored: unknown): { values: Values; missing: string[] } {
  const before = new Map(isObject(stored) ? Object.entries(stored) : []);
  return {
    values: mapValues(sent, (value, key) => (value === MASK ? before.get(key) : value)),
    missing: Object.keys(sent).filter((key) => sent[key] === MASK && !before.has(key)),
  };
}

/** Whether a prop's value is a JSON object. */
export const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value);

/** By entries: assigning to a key such as `__proto__` would not set it. */
export const mapValues = (object: Values, change: (value: unknown, key: string) => unknown): Values =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
