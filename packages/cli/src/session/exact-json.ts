// Node has them; the types of ES2024 lack them
const { rawJSON, isRawJSON } = JSON as unknown as { rawJSON(text: string): RawJson; isRawJSON(value: unknown): value is RawJson };
const parse = JSON.parse as (text: string, revive: (key: string, value: unknown, context: { source: string }) => unknown) => unknown;

interface RawJson {
  rawJSON: string;
}

export { isRawJSON };

/**
 * JSON.parse, except that a number which JavaScript would write differently, such as 12345678901234567890 or 1e400, becomes a value that JSON.stringify
 * writes as it was.
 */
export const parseExactly = (text: string): unknown =>
  parse(text, (_key, value, { source }) => (typeof value === 'number' && String(value) !== source ? rawJSON(source) : value));
