import type { EmitterId } from '#contracts';
import { eventIdOf } from './event-id.js';
import { CODE, endOfValue, next, skipSpace } from './json-scan.js';
import type { Stream } from './streams.js';

/** An event as the API returns it. */
export interface EventSummary {
  id: string;
  indexed_at_ms: number;
  event: unknown;
  metadata: {
    emitter_id: EmitterId;
    emit_id: string;
    /** The name of the stream; empty for the default one. */
    name: Stream;
    summary?: string;
    /** The emitter's id of the item. */
    id?: string;
    /** In ms. */
    ts?: number;
  };
}

/** An event as a page contains it. */
export interface ShownEvent {
  stream: Stream;
  ms: number;
  seq: number;
  emit_id: string;
  /** The event's JSON, whole or truncated. */
  event: Buffer;
  summary: string | null;
  item_id: string | null;
  item_ts: number | null;
}

/**
 * The JSON text of an EventSummary. It contains the event as it was emitted, unparsed.
 *
 * `indexed_at_ms` is the time of the event's id rather than the time of storing it. So the live stream, which does not query the store,
 * shows the same value, and so does a second read of an event that was stored twice.
 */
export function eventSummaryJson(emitterId: EmitterId, shown: ShownEvent): string {
  const metadata = JSON.stringify({
    emitter_id: emitterId,
    emit_id: shown.emit_id,
    name: shown.stream,
    summary: shown.summary ?? undefined,
    id: shown.item_id ?? undefined,
    ts: shown.item_ts ?? undefined,
  });
  return `{"id":"${eventIdOf(shown)}","indexed_at_ms":${shown.ms},"event":${shown.event.toString('utf8')},"metadata":${metadata}}`;
}

/** The JSON text of each field of a summary. */
export type SummaryFields = Record<keyof EventSummary, string>;

/**
 * The fields of a text that `eventSummaryJson` has returned. The event is not parsed: a megabyte of `[[],[],…]` would take 30 ms and 20 MB.
 * @throws Error for another text
 */
export function summaryFields(json: string): SummaryFields {
  const [head, id, ms] = /^\{"id":("[^"]*"),"indexed_at_ms":(\d+),"event":/.exec(json) ?? [];
  // inside of strings, a quote has a backslash before it, so this is not part of the metadata
  const metadata = json.lastIndexOf(METADATA);
  if (head === undefined || metadata < head.length) throw new Error('not the summary of an event');
  return {
    id: id!,
    indexed_at_ms: ms!,
    event: json.slice(head.length, metadata),
    metadata: json.slice(metadata + METADATA.length - 1, -1),
  };
}

const METADATA = ',"metadata":{';

/** An event larger than this is shown truncated unless the whole event is requested. Also the maximum size of the truncated form. Bytes of UTF-8. */
export const WHOLE_UP_TO = 1024;

const MARK = '"$truncated":true}';
const MARK_KEY = '$truncated';
const UNDER_VALUE = '{"value":';

/**
 * The truncated form of an event over 1 KB: an object of at most 1 KB with the event's first members and
 * `"$truncated": true`. For an array it contains the first elements, for a string its beginning, under `"value"`.
 *
 * It scans the bytes of the JSON and stops when the space is used up, so its cost does not grow with the event.
 * @param json valid JSON
 */
export function truncateEvent(json: Buffer): Buffer {
  const start = skipSpace(json, 0);
  switch (json[start]) {
    case CODE.openObject:
      return members(json, start + 1);
    case CODE.openArray:
      return elements(json, start + 1);
    case CODE.quote:
      return text(json, start);
    default:
      return scalar(json, start);
  }
}

function members(json: Buffer, start: number): Buffer {
  const shown = new Shown('{', MARK);
  for (let at = skipSpace(json, start); json[at] === CODE.quote;) {
    const keyEnd = endOfValue(json, at, shown.space);
    if (keyEnd === null) break;
    const valueStart = skipSpace(json, skipSpace(json, keyEnd) + 1);
    const valueEnd = endOfValue(json, valueStart, shown.space);
    if (valueEnd === null) break;
    const key = json.subarray(at, keyEnd);
    // the event may have a member of this name: the one that Sluice adds must be the one that is read. It uses up space, so that repeated ones end the scan
    if (JSON.parse(key.toString('utf8')) === MARK_KEY) shown.space -= valueEnd - at;
    else if (!shown.add(key, ':', json.subarray(valueStart, valueEnd), ',')) break;
    at = next(json, valueEnd);
  }
  return shown.end();
}

function elements(json: Buffer, start: number): Buffer {
  const shown = new Shown(`${UNDER_VALUE}[`, `],${MARK}`);
  let comma = '';
  for (let at = skipSpace(json, start); json[at] !== CODE.closeArray;) {
    const end = endOfValue(json, at, shown.space);
    if (end === null || !shown.add(comma, json.subarray(at, end))) break;
    comma = ',';
    at = next(json, end);
  }
  return shown.end();
}

function text(json: Buffer, start: number): Buffer {
  const shown = new Shown(`${UNDER_VALUE}"`, `",${MARK}`);
  let at = start + 1;
  while (json[at] !== CODE.quote) {
    const end = endOfCharacter(json, at);
    if (end - (start + 1) > shown.space) break;
    at = end;
  }
  shown.add(json.subarray(start + 1, at));
  return shown.end();
}

/** A number or a word, with surrounding whitespace, or a number of a thousand digits. */
function scalar(json: Buffer, start: number): Buffer {
  const shown = new Shown('{', MARK);
  const end = endOfValue(json, start, shown.space);
  if (end !== null) shown.add('"value":', json.subarray(start, end), ',');
  return shown.end();
}

/** Collects output while there is space for the closing bytes. */
class Shown {
  private readonly parts: Buffer[];
  private readonly closing: Buffer;
  space: number;

  constructor(opening: string, closing: string) {
    this.parts = [Buffer.from(opening)];
    this.closing = Buffer.from(closing);
    this.space = WHOLE_UP_TO - opening.length - closing.length;
  }

  /** Adds all of it or nothing. Returns whether it fitted. */
  add(...parts: (Buffer | string)[]): boolean {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    if (size > this.space) return false;
    this.space -= size;
    this.parts.push(...parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
    return true;
  }

  end(): Buffer {
    return Buffer.concat([...this.parts, this.closing]);
  }
}

/** The end of the character that begins here. Escapes, escaped surrogate pairs and multi-byte characters are not split. */
function endOfCharacter(json: Buffer, at: number): number {
  const code = json[at] ?? 0;
  if (code === CODE.backslash) {
    if (json[at + 1] !== CODE.u) return at + 2;
    const isHighSurrogate = /^[dD][89abAB]/.test(json.toString('latin1', at + 2, at + 4));
    const pairFollows = json[at + 6] === CODE.backslash && json[at + 7] === CODE.u;
    return isHighSurrogate && pairFollows ? at + 12 : at + 6;
  }
  return at + (code < 0x80 ? 1 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4);
}
