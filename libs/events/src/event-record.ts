import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { type EmitterId, isEmitterId, ksuid, OUTBOX_HEADER, storableText } from '#contracts';
import {
  attributesProblem,
  type EventContext,
  isAttributeName,
  isJsonContentType,
  isTime,
  producersAttributes,
  STREAM_ATTRIBUTE,
  traceToPassOn,
} from './cloud-event.js';
import { type DeletedRange, type DeletionSigner, isDeletion, isSigned, readDeletion } from './deletions.js';
import { MAX_EMIT_ID_LENGTH, MAX_EVENT_BYTES, MAX_ITEM_ID_LENGTH, MAX_SUMMARY_LENGTH } from './event-limits.js';
import { checkJson, NotJson, TooMuchJson, withoutBom } from './json-text.js';
import { structuredAttributes, structuredEvent } from './structured-event.js';
import { ceTypeOf, emittedStreamProblem, isReserved, type Stream, streamOf, streamOfType, WAITING_STREAM } from './streams.js';
import { type EventPlace, eventPlace } from './event-id.js';

/** A record of the topic `events`. `clock`: the LogAppendTime in ms, made monotonic within its partition. */
export interface EventLogRecord {
  partition: number;
  offset: number;
  clock: number;
  key: string | null;
  value: Buffer | null;
  header(name: string): string | undefined;
  headerNames(): readonly string[];
  /** Whether it has more headers than these functions know. Absent: no. */
  hasTooManyHeaders?: boolean;
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
  /** When the event happened, if the emitter states it; RFC 3339. */
  time?: string;
  /** The attributes of its producer, for receivers. */
  context?: EventContext;
  /** The number of sources and workflows that it passed through. */
  hops: number;
  /** Its cause, unless it came from outside. */
  cause?: Cause;
  /** Only on `$in`: when the event will be emitted, in ms, and on which stream. */
  dueAt?: number;
  dueStream?: Stream;
  /** It waited on `$in` and is now due: the store removes it from there. */
  waited?: boolean;
  /** It comes from the outbox of a service: a run of its emitter emitted it, or Sluice reports an error. Absent: any other producer emitted it. */
  fromOutbox?: true;
}

/** Not an event: it is copied to the dead-letter topic with the reason. */
export interface MalformedRecord {
  kind: 'malformed';
  place: EventPlace;
  reason: string;
  emitterId?: EmitterId;
}

const STRUCTURED = 'application/cloudevents+json';
const JSON_CONTENT = 'application/json';
/** The attributes of a record that Sluice has set, and not the producer: `all`, or the `id` alone. */
const MADE_HEADER = 'ce_sluicemade';

/** A record for Kafka. */
export interface EventToProduce {
  key: string;
  value: Buffer;
  headers: Record<string, string>;
}

/** The cause of an event or a run: a request, a tick, or an event from outside. */
export interface Cause {
  /** The run or the emit at the beginning. */
  root: string;
  /**
   * The most events and runs that the cause can have become. On the way to this event, it was multiplied by the number of listeners of each event and by
   * the number of events (emits, log lines or errors) of each run.
   */
  spread: number;
}

/** Beyond it, a spread is only large. */
const LARGEST_SPREAD = 1e9;

/**
 * The cause of each of `branches` events or runs that `cause` becomes.
 *
 * @param root the run or the emit, if the cause begins here
 */
export const spreadOver = (cause: Cause | undefined, branches: number, root: string): Cause => ({
  root: cause?.root ?? root,
  spread: Math.min((cause?.spread ?? 1) * Math.max(branches, 1), LARGEST_SPREAD),
});

/** Builds the record of an event in CloudEvents' binary mode. */
export function eventRecord(event: Omit<EmittedEvent, 'kind' | 'place' | 'hops'> & { hops?: number }): EventToProduce {
  const { attributes, traceparent, tracestate } = event.context ?? {};
  const headers: Record<string, string> = {
    ce_specversion: '1.0',
    ce_id: event.emitId,
    ce_source: event.emitterId,
    ce_type: ceTypeOf(event.stream),
    'content-type': JSON_CONTENT,
  };
  if (attributes?.id === undefined) headers[MADE_HEADER] = attributes ? 'id' : 'all';
  if (attributes) setAttributes(headers, attributes, event.stream);
  if (traceparent !== undefined) headers.traceparent = traceparent;
  if (tracestate !== undefined) headers.tracestate = tracestate;
  if (event.time !== undefined) headers.ce_time = event.time;
  if (event.summary !== undefined) headers.ce_summary = storableText(event.summary);
  if (event.itemId !== undefined) headers.ce_itemid = storableText(event.itemId);
  // the digits of its producer, if it is an attribute
  if (event.itemTs !== undefined) headers.ce_itemts ??= String(event.itemTs);
  if (event.hops) headers.ce_hops = String(event.hops);
  if (event.cause) {
    headers.ce_sluiceroot = event.cause.root;
    headers.ce_sluicespread = String(event.cause.spread);
  }
  if (event.dueAt !== undefined) headers.ce_sluicedueat = String(event.dueAt);
  if (event.dueStream !== undefined) headers.ce_sluiceduestream = ceTypeOf(event.dueStream);
  return { key: event.emitterId, value: event.json, headers };
}

function setAttributes(headers: Record<string, string>, attributes: Readonly<Record<string, string>>, stream: Stream): void {
  for (const name in attributes) headers[`ce_${name}`] = attributes[name] as string;
  const { type, datacontenttype } = attributes;
  // a type of the producer's names no stream here: `$delete` would even be a command
  if (type !== undefined) headers[`ce_${STREAM_ATTRIBUTE}`] = ceTypeOf(stream);
  if (datacontenttype !== undefined && isJsonContentType(datacontenttype)) {
    headers['content-type'] = datacontenttype;
    delete headers.ce_datacontenttype;
  }
}

/**
 * Reads a record of the topic `events`: CloudEvents in binary or structured mode, or a bare JSON value.
 *
 * @param signer verifies deletions; a reader that ignores them needs none
 */
export function readEventRecord(
  record: EventLogRecord,
  { maxBytes = MAX_EVENT_BYTES, signer }: { maxBytes?: number; signer?: Pick<DeletionSigner, 'verifies'> } = {},
): EmittedEvent | DeletedRange | MalformedRecord {
  const place = eventPlace(record);
  const emitterId = emitterOf(record);
  if (!isEmitterId(emitterId))
    return {
      kind: 'malformed',
      place,
      reason: `${record.key ? 'the key is' : 'the record has no key, and its source is'} not the id of a source or workflow`,
    };
  if (record.hasTooManyHeaders) return { kind: 'malformed', place, reason: 'the record has more than 1000 headers', emitterId };
  if (signer && isDeletion(record) && !isSigned(record, emitterId, signer))
    return {
      kind: 'malformed',
      place,
      reason: 'the deletion is not signed by Sluice; DELETE /v1/sources/{id}/events deletes events',
      emitterId,
    };
  const read = readValue(record, { place, emitterId }, maxBytes);
  return typeof read === 'string' ? { kind: 'malformed', place, reason: read, emitterId } : read;
}

/**
 * The id of a record's emitter. The key determines the partition, and with it the order, so it takes precedence over the source. Some clients send an empty
 * key instead of none.
 */
export const emitterOf = (record: EventLogRecord): string | undefined =>
  record.key || record.header('ce_source') || structuredSource(record);

function structuredSource(record: EventLogRecord): string | undefined {
  if (!record.value || !isStructured(record.header('content-type'))) return undefined;
  try {
    const source = structuredEvent(withoutBom(record.value))?.members.get('source');
    return source?.kind === 'string' ? source.text : undefined;
  } catch (error) {
    if (error instanceof NotJson) return undefined;
    throw error;
  }
}

const isStructured = (contentType: string | undefined): boolean => contentType?.toLowerCase().startsWith(STRUCTURED) === true;

/** The parts of a record's content that are known before its value. */
type Origin = Pick<EmittedEvent, 'place' | 'emitterId'>;

/** A string is the reason why the record is malformed. */
function readValue(record: EventLogRecord, origin: Origin, maxBytes: number): EmittedEvent | DeletedRange | string {
  if (record.value === null) return 'the record has no value';
  if (!isUtf8(record.value)) return `the value is not UTF-8${structuredHint(record)}`;
  const value = withoutBom(record.value);
  try {
    if (isDeletion(record)) return readDeletion(origin, value) ?? 'the deletion does not name a range of event ids';
    const cloudEvent = cloudEventOf(record, value);
    if (cloudEvent === null) return 'the value is not a CloudEvent';
    const { json, attributes } = cloudEvent;
    const event = readEvent(record, origin, json, attributes);
    // an error contains another event: with a lower limit, nobody would notice it
    const most = typeof event === 'string' || isReserved(event.stream) ? MAX_EVENT_BYTES : maxBytes;
    return json.length > most ? `the event has ${json.length} bytes of JSON; the limit is ${most}` : event;
  } catch (error) {
    if (error instanceof TooMuchJson) return error.message;
    if (error instanceof NotJson) return `the value is not JSON: ${error.message}${structuredHint(record)}`;
    throw error;
  }
}

/** For a producer that sends other data than JSON in binary mode. */
function structuredHint(record: EventLogRecord): string {
  const type = record.header('content-type');
  if (type === undefined || isJsonContentType(type) || isStructured(type)) return '';
  return `; data of the type ${type.slice(0, 100)} needs structured mode`;
}

/** Also those that Sluice has set, which do not count as attributes of the producer: each record that is made of an event contains them. */
const LONGEST = [
  ['id', MAX_EMIT_ID_LENGTH],
  ['summary', MAX_SUMMARY_LENGTH],
  ['itemid', MAX_ITEM_ID_LENGTH],
] as const;

/** The first attribute that is longer than it may be, in characters; undefined if none is. Readers take a record with one for malformed. */
export function tooLongAttribute(attributes: Readonly<Record<string, string>>): { name: string; longest: number } | undefined {
  for (const [name, longest] of LONGEST) if ((attributes[name]?.length ?? 0) > longest) return { name, longest };
  return undefined;
}

function lengthProblem(attributes: Attributes): string | null {
  const tooLong = tooLongAttribute(attributes);
  return tooLong ? `ce_${tooLong.name} is longer than ${tooLong.longest} characters` : null;
}

/** A string is the reason why the record is malformed. */
function readEvent(record: EventLogRecord, { place, emitterId }: Origin, json: Buffer, attributes: Attributes): EmittedEvent | string {
  const isFromOutbox = record.header(OUTBOX_HEADER) !== undefined;
  // only a run emits these, through the outbox; a producer that imitates it is not recognised
  const due = isFromOutbox ? integer(attributes.sluicedueat) : undefined;
  const stream = streamOfEvent(attributes[STREAM_ATTRIBUTE], attributes.type, due !== undefined);
  if (stream === undefined) return `ce_${STREAM_ATTRIBUTE} names no stream`;
  const made = record.header(MADE_HEADER);
  const set = { id: made === 'id' ? attributes.id : undefined, source: emitterId, type: ceTypeOf(stream) };
  const producers = made === 'all' ? undefined : producersAttributes(attributes, set);
  const problem = lengthProblem(attributes) ?? attributesProblem(attributes, producers);
  if (problem) return problem;
  const dueAt = stream === WAITING_STREAM ? due : undefined;
  return {
    kind: 'event',
    place,
    emitterId,
    stream,
    emitId: attributes.id || placeEmitId(record),
    json,
    summary: attributes.summary,
    itemId: attributes.itemid,
    itemTs: integer(attributes.itemts),
    time: attributes.time !== undefined && isTime(attributes.time) ? attributes.time : undefined,
    context: contextOf(producers, traceToPassOn(record.header('traceparent')), traceToPassOn(record.header('tracestate'))),
    // with a negative number, a loop would run on
    hops: Math.max(integer(attributes.hops) ?? 0, 0),
    ...causeOf(attributes),
    dueAt,
    dueStream: dueAt === undefined ? undefined : streamOf(attributes.sluiceduestream),
    waited: due !== undefined && stream !== WAITING_STREAM,
    ...(isFromOutbox && { fromOutbox: true }),
  };
}

function causeOf({ sluiceroot: root, sluicespread }: Record<string, string>): { cause?: Cause } {
  const spread = integer(sluicespread);
  if (!root || root.length > MAX_EMIT_ID_LENGTH || spread === undefined || spread < 1) return {};
  return { cause: { root, spread: Math.min(spread, LARGEST_SPREAD) } };
}

/**
 * If the producer sets no id, it is derived from the record's position, so that every reader computes the same one. The clock is part of it in ms, too:
 * a KSUID has seconds, within which another log may have begun, with other records at the same offsets.
 */
function placeEmitId({ clock, partition, offset }: EventLogRecord): string {
  return ksuid(clock, createHash('md5').update(`${clock}-${partition}-${offset}`).digest());
}

type Attributes = Record<string, string>;

/** The JSON of an event, and its attributes. */
interface CloudEvent {
  json: Buffer;
  attributes: Attributes;
}

/** null: in structured mode, it is not a CloudEvent. @throws NotJson */
function cloudEventOf(record: EventLogRecord, value: Buffer): CloudEvent | null {
  const contentType = record.header('content-type');
  if (isStructured(contentType)) return structuredCloudEvent(value);
  checkJson(value);
  return { json: value, attributes: binaryAttributes(record, contentType) };
}

function binaryAttributes(record: EventLogRecord, contentType: string | undefined): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const header of record.headerNames()) {
    const name = attributeNameOf(header);
    if (name === null) continue;
    const attribute = record.header(header);
    if (attribute !== undefined) attributes[name] = attribute;
  }
  if (contentType !== undefined && contentType !== JSON_CONTENT) attributes.datacontenttype ??= contentType;
  return attributes;
}

const PREFIX = 'ce_';
const KNOWN_NAMES = 1000;
/** Longer names are not worth the memory. */
const MAX_HEADER_NAME = 100;
/** The results of `attributeNameOf`: most records have the same headers. */
const attributeNames = new Map<string, string | null>();

/** The name of the attribute that a header of a record contains; null if it contains none. */
function attributeNameOf(header: string): string | null {
  const known = attributeNames.get(header);
  if (known !== undefined) return known;
  const name = header.slice(PREFIX.length);
  const found = header.startsWith(PREFIX) && isAttributeName(name) ? name : null;
  if (attributeNames.size >= KNOWN_NAMES) attributeNames.clear();
  if (header.length <= MAX_HEADER_NAME) attributeNames.set(header, found);
  return found;
}

function structuredCloudEvent(value: Buffer): CloudEvent | null {
  const event = structuredEvent(value);
  if (event === null) return null;
  const attributes = structuredAttributes(event);
  if (event.data) return { json: event.data, attributes };
  const base64 = event.members.get('data_base64');
  if (base64 === undefined || base64.kind === 'null')
    return event.members.get('specversion')?.kind === 'string' ? { json: Buffer.from('null'), attributes } : null;
  if (base64.kind !== 'string') return null;
  const bytes = withoutBom(Buffer.from(base64.text, 'base64'));
  if (isJson(bytes)) return { json: bytes, attributes };
  // bytes that are not JSON: the event is their base64, as when it is published over HTTP
  return { json: Buffer.from(JSON.stringify(base64.text)), attributes: { ...attributes, datacontentencoding: 'base64' } };
}

/** @throws TooMuchJson */
function isJson(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  try {
    checkJson(bytes);
    return true;
  } catch (error) {
    if (error instanceof TooMuchJson || !(error instanceof NotJson)) throw error;
    return false;
  }
}

const contextOf = (
  attributes: Record<string, string> | undefined,
  traceparent: string | undefined,
  tracestate: string | undefined,
): EventContext | undefined =>
  attributes === undefined && traceparent === undefined && tracestate === undefined ? undefined : { attributes, traceparent, tracestate };

/** The stream of an event; undefined if the given name is not valid. */
function streamOfEvent(named: string | undefined, type: string | undefined, waits: boolean): Stream | undefined {
  if (named === undefined) return waits && type === WAITING_STREAM ? type : streamOfType(type);
  const stream = streamOf(named);
  return emittedStreamProblem(stream) === null ? stream : undefined;
}

/** As CloudEvents writes an integer in a header; `Number` also reads `1e3`, `0x10` and ` 12 `. */
const INTEGER = /^-?\d+$/;

function integer(text: string | undefined): number | undefined {
  const number = text !== undefined && INTEGER.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}
