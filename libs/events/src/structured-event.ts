import { isAttributeName } from './cloud-event.js';
import { CODE, endOfValue, next, skipSpace } from './json-scan.js';

/**
 * The texts of those members of a structured CloudEvent that parsing and serializing would change: 1.0 would become 1, 1e400 null, and
 * 12345678901234567890 would lose digits.
 */
export interface SourceTexts {
  /** The JSON of `data`; undefined if there is none. */
  data?: Buffer;
  /** The members that are numbers, by name. */
  numbers: Map<string, string>;
}

/** The texts of a structured CloudEvent; none if the JSON is not an object. @param json valid JSON */
export const structuredTexts = (json: Buffer): SourceTexts => textsAt(json, skipSpace(json, 0)).texts;

/** The texts of each event of a batch. @param json a valid JSON array */
export function batchTexts(json: Buffer): SourceTexts[] {
  const batch: SourceTexts[] = [];
  for (let at = skipSpace(json, skipSpace(json, 0) + 1); json[at] !== CODE.closeArray;) {
    const { texts, end } = textsAt(json, at);
    batch.push(texts);
    at = next(json, end);
  }
  return batch;
}

function textsAt(json: Buffer, start: number): { texts: SourceTexts; end: number } {
  const texts: SourceTexts = { numbers: new Map() };
  if (json[start] !== CODE.openObject) return { texts, end: valueEnd(json, start) };
  let at = skipSpace(json, start + 1);
  // the last of several members with the same name counts, as in JSON.parse
  while (json[at] === CODE.quote) {
    const keyEnd = valueEnd(json, at);
    const valueStart = skipSpace(json, skipSpace(json, keyEnd) + 1);
    const end = valueEnd(json, valueStart);
    if (isNumber(json[valueStart])) texts.numbers.set(keyAt(json, at, keyEnd), json.toString('latin1', valueStart, end));
    if (isData(json, at, keyEnd)) texts.data = json.subarray(valueStart, end);
    at = next(json, end);
  }
  return { texts, end: at + 1 };
}

const valueEnd = (json: Buffer, start: number): number => endOfValue(json, start, json.length) ?? json.length;

const keyAt = (json: Buffer, start: number, end: number): string => JSON.parse(json.toString('utf8', start, end)) as string;

/** A key without escapes is not decoded. */
const isData = (json: Buffer, start: number, end: number): boolean =>
  matches(json, start, end, DATA) || (isEscaped(json, start, end) && keyAt(json, start, end) === 'data');

const DATA = Buffer.from('"data"');

function matches(json: Buffer, start: number, end: number, key: Buffer): boolean {
  if (end - start !== key.length) return false;
  for (let n = 0; n < key.length; n++) if (json[start + n] !== key[n]) return false;
  return true;
}

function isEscaped(json: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (json[at] === CODE.backslash) return true;
  return false;
}

const isNumber = (code = 0): boolean => code === CODE.minus || (code >= CODE.zero && code <= CODE.nine);

/** The attributes among the members of a structured CloudEvent; those that can be none are left out. Numbers are as they were written. */
export function structuredAttributes(members: Readonly<Record<string, unknown>>, { numbers }: SourceTexts): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [name, value] of Object.entries(members)) {
    if (name === 'data' || !isAttributeName(name) || !['string', 'number', 'boolean'].includes(typeof value)) continue;
    const text = typeof value === 'number' ? numbers.get(name) : undefined;
    // as a header would carry it: unpaired surrogates cannot be stored, so they must not make a difference
    attributes[name] = text ?? String(value).toWellFormed();
  }
  return attributes;
}
