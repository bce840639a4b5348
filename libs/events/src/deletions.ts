import type { EmitterId, EventDeletion } from '#contracts';
import { STREAM_ATTRIBUTE } from './cloud-event.js';
import { AFTER_ALL, BEFORE_ALL, comparePlaces, eventIdOf, type EventPlace, parseEventId } from './event-id.js';
import type { EventLogRecord, EventToProduce } from './event-record.js';
import { checkJson } from './json-text.js';
import { coversStream, EVERY_STREAM, type Stream } from './streams.js';

/** A deletion of a range of events, both bounds inclusive. It is a record of the topic, so its position decides which events it covers. */
export interface DeletedRange {
  kind: 'delete';
  place: EventPlace;
  emitterId: EmitterId;
  start: EventPlace | null;
  end: EventPlace | null;
  /** null: all streams. */
  stream: Stream | null;
}

const DELETE_TYPE = '$delete';
const SIGNATURE_HEADER = 'ce_sluicesignature';
/** How far the clock of a partition may be ahead of the gateway's: its own (AHEAD_MS), and the difference between the machines. */
const CLOCKS_DIFFER_MS = 10 * 60_000;

/** Signs deletions, and verifies them: every producer of the topic could write one. `SecretBox` is one. */
export interface DeletionSigner {
  sign(text: Buffer, context: string): string;
  verifies(signature: string, text: Buffer, context: string): boolean;
}

const contextOf = (emitterId: EmitterId): string => `deletion ${emitterId}`;

/**
 * Builds the record of a range deletion. It deletes events before its own place in the log, so it must be written once: a second copy deletes the events
 * between the two. The signed range ends at most ten minutes from now: a reader of the topic who writes the record again deletes nothing that comes later.
 */
export function deletionRecord(
  { emitterId, startId, endId, stream }: { emitterId: EmitterId; startId?: string; endId?: string; stream?: Stream },
  signer: Pick<DeletionSigner, 'sign'>,
  now = Date.now(),
): EventToProduce {
  const latest: EventPlace = { ms: now + CLOCKS_DIFFER_MS, seq: 0 };
  const end = endId === undefined ? latest : parseEventId(endId);
  const end_id = end && comparePlaces(end, latest) > 0 ? eventIdOf(latest) : (endId ?? eventIdOf(latest));
  const value = Buffer.from(JSON.stringify({ start_id: startId, end_id, stream }));
  const signature = signer.sign(value, contextOf(emitterId));
  return {
    key: emitterId,
    value,
    headers: { ce_specversion: '1.0', ce_source: emitterId, ce_type: DELETE_TYPE, [SIGNATURE_HEADER]: signature },
  };
}

/** Whether the deletion is signed by this installation. */
export const isSigned = (record: EventLogRecord, emitterId: EmitterId, signer: Pick<DeletionSigner, 'verifies'>): boolean =>
  signer.verifies(record.header(SIGNATURE_HEADER) ?? '', record.value ?? Buffer.alloc(0), contextOf(emitterId));

/** Whether the record is a deletion. A producer's type of this name does not make it one if the record names its stream. */
export const isDeletion = (record: EventLogRecord): boolean =>
  record.header('ce_type') === DELETE_TYPE && record.header(`ce_${STREAM_ATTRIBUTE}`) === undefined;

/** A deletion has two event ids and a stream: more bytes are not parsed. */
const MAX_DELETION_BYTES = 4096;

/** Reads the value of such a record; null if it does not name a range of event ids. */
export function readDeletion(origin: Pick<DeletedRange, 'place' | 'emitterId'>, json: Buffer): DeletedRange | null {
  if (json.length > MAX_DELETION_BYTES) return null;
  checkJson(json);
  const value: unknown = JSON.parse(json.toString('utf8'));
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  const range = value as { start_id?: string; end_id?: string; stream?: unknown };
  if (range.stream !== undefined && (typeof range.stream !== 'string' || range.stream.includes('\0'))) return null;
  const start = range.start_id === undefined ? null : parseEventId(range.start_id);
  const end = range.end_id === undefined ? null : parseEventId(range.end_id);
  if ((range.start_id !== undefined && !start) || (range.end_id !== undefined && !end)) return null;
  return { kind: 'delete', ...origin, start, end, stream: range.stream ?? null };
}

/** Whether an event of a stream at a place is in the range. An event that was emitted after the deletion may be: the caller handles records in order. */
export const isInRange = (
  { stream: deleted, start, end }: Pick<DeletedRange, 'stream' | 'start' | 'end'>,
  stream: Stream,
  place: EventPlace,
): boolean =>
  (deleted === null || coversStream(deleted, stream)) &&
  (start === null || comparePlaces(place, start) >= 0) &&
  (end === null || comparePlaces(place, end) <= 0);

/** The places from the first to the last, both inclusive. */
export interface Span {
  first: EventPlace;
  last: EventPlace;
}

const earlier = (a: EventPlace, b: EventPlace): EventPlace => (comparePlaces(a, b) <= 0 ? a : b);

/**
 * Reads the deletions of an emitter once. The returned function finds whether an event of a stream at a place is deleted, by a binary search, however
 * many deletions there are. A deletion does not delete events that were emitted after it.
 */
export function deletedBy(deletions: readonly EventDeletion[]): (stream: Stream, place: EventPlace) => boolean {
  const spans = new Map([...Map.groupBy(deletions, ({ stream }) => stream)].map(([stream, own]) => [stream, mergedSpans(own.map(spanOf))]));
  return (stream, place) =>
    [null, EVERY_STREAM, stream].some((key) => (key === null || coversStream(key, stream)) && isWithin(spans.get(key) ?? [], place));
}

/** Spans in their order that cover the same places. No two of them overlap. */
export function mergedSpans(spans: Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => comparePlaces(a.first, b.first))) {
    const before = merged.at(-1);
    if (!before || comparePlaces(before.last, span.first) < 0) merged.push({ ...span });
    else if (comparePlaces(before.last, span.last) < 0) before.last = span.last;
  }
  return merged;
}

function spanOf({ start_id, end_id, at_id }: EventDeletion): Span {
  const [start, end, at] = [start_id, end_id, at_id].map((id) => (id === null ? null : parseEventId(id)));
  const before = at ? { ms: at.ms, seq: at.seq - 1 } : AFTER_ALL;
  return { first: start ?? BEFORE_ALL, last: end ? earlier(end, before) : before };
}

function isWithin(spans: Span[], place: EventPlace): boolean {
  let [low, high] = [0, spans.length];
  // finds the number of spans that begin at the place or before it
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comparePlaces((spans[middle] as Span).first, place) <= 0) low = middle + 1;
    else high = middle;
  }
  const span = spans[low - 1];
  return span !== undefined && comparePlaces(place, span.last) <= 0;
}
