import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { type EmitterId, isEmitterId } from './ids.js';
import { keepableText } from './keepable-text.js';
import { MAX_JSON_DEPTH, nestsTooDeeply } from './json-nesting.js';
import { ksuid } from './ksuid.js';
import { ceTypeOf, type Stream, streamOf, WAITING_STREAM, readableStreamProblem } from './streams.js';
import { type EventPlace, eventPlace, parseEventId } from './event-id.js';

/** A record of the topic `events`. `clock`: the LogAppendTime in ms, made monotonic within its partition. */
export interface EventLogRecord {
  partition: number;
  offset: number;
  clock: number;
  key: string | null;
  value: Buffer | null;
  header(name: string): string | undefined;
}

/** An event that has been written to the topic. */
export interface EmittedEvent {
  kind: 'event';
  place: EventPlace;
  emitterId: EmitterId;
  stream: Stream;
  /** Identifies the emit: a record with the same id is the same event. */
  emitId: string;
  /** The event's JSON as it was emitted, byte for byte (of a structured CloudEvent: its `data`). */
  json: Buffer;
  /** `summary`, `id` and `ts` (ms) as the emitter set them. */
  summary?: string;
  itemId?: string;
  itemTs?: number;
  /** When the event happened, if the emitter states it; ISO 8601. */
  time?: string;
  /** The number of sources and workflows that it passed through. */
  hops: number;
  /** Only on `$in`: when the event will be emitted, in ms, and on which stream. */
  dueAt?: number;
  dueStream?: Stream;
  /** It waited on `$in` and is now due: the store removes it from there. */
  waited?: boolean;
}

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

/** Not an event: it is copied to the dead-letter topic with the reason. */
export interface MalformedRecord {
  kind: 'malformed';
  place: EventPlace;
  reason: string;
  emitterId?: EmitterId;
}

/** The size of the largest event, in bytes of JSON. */
export const MAX_EVENT_BYTES = 1024 * 1024;
const MAX_EMIT_ID_LENGTH = 256;

const DELETE_TYPE = '$delete';
const STRUCTURED = 'application/cloudevents+json';

/** A record for Kafka. */
export interface EventToProduce {
  key: string;
  value: Buffer;
  headers: Record<string, string>;
}

/** Builds the record of an event in CloudEvents' binary mode. */
export function eventRecord(event: Omit<EmittedEvent, 'kind' | 'place' | 'hops'> & { hops?: number }): EventToProduce {
  const headers: Record<string, string> = {
    ce_specversion: '1.0',
    ce_id: event.emitId,
    ce_source: event.emitterId,
    ce_type: ceTypeOf(event.stream),
    'content-type': 'application/json',
  };
  if (event.time !== undefined) headers.ce_time = event.time;
  if (event.summary !== undefined) headers.ce_summary = keepableText(event.summary);
  if (event.itemId !== undefined) headers.ce_itemid = keepableText(event.itemId);
  if (event.itemTs !== undefined) headers.ce_itemts = String(event.itemTs);
  if (event.hops) headers.ce_hops = String(event.hops);
  if (event.dueAt !== undefined) headers.ce_dueat = String(event.dueAt);
  if (event.dueStream !== undefined) headers.ce_duestream = ceTypeOf(event.dueStream);
  return { key: event.emitterId, value: event.json, headers };
}

/** Builds the record of a range deletion. */
export function deletionRecord(range: { emitterId: EmitterId; startId?: string; endId?: string; stream?: Stream }): EventToProduce {
  return {
    key: range.emitterId,
    value: Buffer.from(JSON.stringify({ start_id: range.startId, end_id: range.endId, stream: range.stream })),
    headers: { ce_specversion: '1.0', ce_source: range.emitterId, ce_type: DELETE_TYPE },
  };
}

/** Reads a record of the topic `events`: CloudEvents in binary or structured mode, or a bare JSON value. */
export function readEventRecord(
  record: EventLogRecord,
  { maxBytes = MAX_EVENT_BYTES } = {},
): EmittedEvent | DeletedRange | MalformedRecord {
  const place = eventPlace(record);
  const type = record.header('ce_type');
  // the key determines the partition, and with it the order, so it takes precedence over ce_source
  const emitterId = record.key ?? record.header('ce_source');
  if (!isEmitterId(emitterId)) return { kind: 'malformed', place, reason: 'the key is not the id of a source or workflow' };
  const malformed = (reason: string): MalformedRecord => ({ kind: 'malformed', place, reason, emitterId });
  if (record.value === null) return malformed('the record has no value');
  if (!isUtf8(record.value)) return malformed('the value is not UTF-8');
  const text = record.value.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return malformed(`the value is not JSON: ${(error as Error).message}`);
  }
  if (type === DELETE_TYPE) return readDeletion(place, emitterId, value) ?? malformed('the deletion does not name a range of event ids');
  const attributes = record.header('content-type')?.toLowerCase().startsWith(STRUCTURED)
    ? structuredAttributes(value)
    : { data: value, text: record.value, get: (name: string) => record.header(`ce_${name}`) };
  if (attributes === null) return malformed('the value is not a CloudEvent with data');
  // each level takes at least two bytes, so most events are too short to need the check
  if (record.value.length > 2 * MAX_JSON_DEPTH && nestsTooDeeply(attributes.data))
    return malformed(`the event is nested deeper than ${MAX_JSON_DEPTH} levels`);
  const json = attributes.text ?? Buffer.from(JSON.stringify(attributes.data));
  const stream = streamOf(attributes.get('type'));
  const streamProblem = readableStreamProblem(stream);
  if (streamProblem) return malformed(`ce_type is not a stream: ${streamProblem}`);
  if (json.length > maxBytes) return malformed(`the event has ${json.length} bytes of JSON; the limit is ${maxBytes}`);
  const emitId = attributes.get('id') || placeEmitId(record);
  if (emitId.length > MAX_EMIT_ID_LENGTH) return malformed(`ce_id is longer than ${MAX_EMIT_ID_LENGTH} characters`);
  const [summary, itemId, time] = [attributes.get('summary'), attributes.get('itemid'), attributes.get('time')];
  // CloudEvents forbids NUL, and PostgreSQL cannot store it
  if ([emitId, summary, itemId, time].some((text) => text?.includes('\0'))) return malformed('a ce_ attribute holds a NUL character');
  const itemTs = integer(attributes.get('itemts'));
  const due = integer(attributes.get('dueat'));
  const dueAt = stream === WAITING_STREAM ? due : undefined;
  if (stream === WAITING_STREAM && dueAt === undefined) return malformed(`${WAITING_STREAM} takes only what waits for a ce_dueat`);
  return {
    kind: 'event',
    place,
    emitterId,
    stream,
    emitId,
    json,
    summary,
    itemId,
    itemTs,
    time,
    hops: integer(attributes.get('hops')) ?? 0,
    dueAt,
    dueStream: dueAt === undefined ? undefined : streamOf(attributes.get('duestream')),
    waited: due !== undefined && stream !== WAITING_STREAM,
  };
}

/** If the producer sets no id, it is derived from the record's position, so that every reader computes the same one. */
function placeEmitId(record: EventLogRecord): string {
  return ksuid(record.clock, createHash('md5').update(`${record.partition}-${record.offset}`).digest());
}

/** The data of an event, its text if there is one, and its attributes. */
interface CloudEventAttributes {
  data: unknown;
  text?: Buffer;
  get(name: string): string | undefined;
}

function structuredAttributes(value: unknown): CloudEventAttributes | null {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  const cloudEvent = value as Record<string, unknown>;
  let { data } = cloudEvent;
  let text: Buffer | undefined;
  if (typeof cloudEvent.data_base64 === 'string' && !('data' in cloudEvent)) {
    text = Buffer.from(cloudEvent.data_base64, 'base64');
    if (!isUtf8(text)) return null;
    try {
      data = JSON.parse(text.toString('utf8'));
    } catch {
      return null;
    }
  }
  if (data === undefined) return null;
  return {
    data,
    text,
    get: (name) => {
      const attribute = cloudEvent[name];
      // as a header would transmit it: headers cannot carry unpaired surrogates, and both modes must yield the same text
      return typeof attribute === 'string' || typeof attribute === 'number' ? String(attribute).toWellFormed() : undefined;
    },
  };
}

function readDeletion(place: EventPlace, emitterId: EmitterId, value: unknown): DeletedRange | null {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  const range = value as { start_id?: string; end_id?: string; stream?: unknown };
  if (range.stream !== undefined && (typeof range.stream !== 'string' || range.stream.includes('\0'))) return null;
  const start = range.start_id === undefined ? null : parseEventId(range.start_id);
  const end = range.end_id === undefined ? null : parseEventId(range.end_id);
  if ((range.start_id !== undefined && !start) || (range.end_id !== undefined && !end)) return null;
  return { kind: 'delete', place, emitterId, start, end, stream: range.stream ?? null };
}

function integer(text: string | undefined): number | undefined {
  const number = text === undefined || text === '' ? NaN : Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}
