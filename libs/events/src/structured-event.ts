import { isAttributeName } from './cloud-event.js';
import { CODE, decoded, endOfValue, skipSpace } from './json-scan.js';
import { checkEnd, endOfJson, endOfString, NotJson, startOfValue, TooMuchJson } from './json-text.js';

/** A CloudEvent in structured mode. Its members are found by scanning: parsing its data can take a hundred times as long. */
export interface StructuredEvent {
  /** The JSON of `data`, byte for byte; undefined if there is none. */
  data?: Buffer;
  /** The other members, by name. Of several with the same name, the last one counts, as in `JSON.parse`. */
  members: Map<string, Member>;
}

/** `text`: of a string its characters, of a number its digits as they were written: 1.0 is not 1, and 12345678901234567890 keeps its digits. */
export interface Member {
  kind: 'string' | 'number' | 'boolean' | 'null' | 'nested';
  text: string;
}

/** Twice as many as an event may have attributes: each costs time, also if it is repeated or null. */
const MAX_MEMBERS = 128;

/** Reads a JSON text: null if it is not an object. @throws NotJson */
export function structuredEvent(json: Buffer): StructuredEvent | null {
  const { event, end } = eventAt(json, skipSpace(json, 0));
  checkEnd(json, end);
  return event;
}

/** Whether a JSON text can only be an array. */
export const beginsArray = (json: Buffer): boolean => json[skipSpace(json, 0)] === CODE.openArray;

/** Reads the elements of a JSON array, each when it is needed: null if it is not an object, an error if it is skipped. @throws NotJson */
export function* eventsOfBatch(json: Buffer): Generator<StructuredEvent | TooMuchJson | null, void> {
  let at = skipSpace(json, skipSpace(json, 0) + 1);
  if (json[at] !== CODE.closeArray) {
    for (;;) {
      const { event, end } = elementAt(json, at);
      yield event;
      at = skipSpace(json, end);
      if (json[at] !== CODE.comma) break;
      at = skipSpace(json, at + 1);
    }
  }
  if (json[at] !== CODE.closeArray) throw new NotJson(`a comma is missing at byte ${at}`);
  checkEnd(json, at + 1);
}

/** An element that is not read is skipped, so that the later ones are checked. */
function elementAt(json: Buffer, start: number): { event: StructuredEvent | TooMuchJson | null; end: number } {
  try {
    return eventAt(json, start);
  } catch (error) {
    const end = error instanceof TooMuchJson ? endOfValue(json, start, json.length - start) : null;
    if (end === null) throw error;
    return { event: error as TooMuchJson, end };
  }
}

function eventAt(json: Buffer, start: number): { event: StructuredEvent | null; end: number } {
  if (json[start] !== CODE.openObject) return { event: null, end: endOfJson(json, start) };
  const event: StructuredEvent = { members: new Map() };
  let at = skipSpace(json, start + 1);
  if (json[at] === CODE.closeObject) return { event, end: at + 1 };
  for (let count = 1; ; count++) {
    if (json[at] !== CODE.quote) throw new NotJson(`a name is missing at byte ${at}`);
    if (count > MAX_MEMBERS) throw new TooMuchJson(`the event has more than ${MAX_MEMBERS} members`);
    const nameEnd = endOfString(json, at);
    const valueStart = startOfValue(json, nameEnd);
    const end = endOfJson(json, valueStart);
    const name = decoded(json, at, nameEnd);
    if (name === 'data') event.data = json.subarray(valueStart, end);
    else event.members.set(name, memberAt(json, valueStart, end));
    at = skipSpace(json, end);
    if (json[at] === CODE.closeObject) return { event, end: at + 1 };
    if (json[at] !== CODE.comma) throw new NotJson(`a comma is missing at byte ${at}`);
    at = skipSpace(json, at + 1);
  }
}

function memberAt(json: Buffer, start: number, end: number): Member {
  const code = json[start]!;
  if (code === CODE.quote) return { kind: 'string', text: decoded(json, start, end) };
  if (code === CODE.openObject || code === CODE.openArray) return { kind: 'nested', text: '' };
  const text = json.toString('latin1', start, end);
  if (text === 'null') return { kind: 'null', text };
  return { kind: text === 'true' || text === 'false' ? 'boolean' : 'number', text };
}

/** The attributes among the members of a structured CloudEvent; those that can be none are left out. */
export function structuredAttributes({ members }: StructuredEvent): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [name, { kind, text }] of members) {
    if (kind === 'nested' || kind === 'null' || !isAttributeName(name)) continue;
    // as a header would carry it: unpaired surrogates cannot be stored, so they must not make a difference
    attributes[name] = text.toWellFormed();
  }
  return attributes;
}
