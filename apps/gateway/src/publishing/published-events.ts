import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { type FieldProblem, Invalid, isText, ksuid, MAX_JSON_DEPTH, nestsTooDeeply, NOT_TEXT } from '#contracts';
import {
  attributesProblem,
  batchTexts,
  emittedStreamProblem,
  type EventContext,
  isAttributeName,
  isOwnAttribute,
  MAX_EMIT_ID_LENGTH,
  percentDecoded,
  type SourceTexts,
  type Stream,
  STREAM_ATTRIBUTE,
  streamOf,
  structuredAttributes,
  structuredTexts,
} from '#events';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import { repeatableKsuid } from '../idempotency/new-ids.js';
import { BATCH_TYPE, mediaTypeOf, STRUCTURED_TYPE } from '../http/request-bodies.js';

/** A request to publish. `event_name` and `id` of the query win over the CloudEvents attributes. */
export interface PublishRequest {
  headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  rawHeaders: string[];
  body: Buffer;
  /** As the server has parsed it: an array if a parameter is repeated. */
  query: { event_name?: unknown; id?: unknown };
  /** Of a request with an `Idempotency-Key`. */
  heldKey?: HeldKey;
}

/** An event that a request publishes. */
export interface PublishedEvent {
  emitId: string;
  stream: Stream;
  /** Its JSON as sent, byte for byte (of a structured CloudEvent: its `data`). */
  json: Buffer;
  time?: string;
  context?: EventContext;
}

const MAX_EVENTS = 500;
/** RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const REQUIRED = ['specversion', 'id', 'source', 'type'];
/** CloudEvents JSON format: members that are not attributes. */
const NO_ATTRIBUTES = new Set(['data', 'data_base64']);
const UTF8_BOM = Buffer.from('\uFEFF');

/** The attributes of an event, and their problems. Each problem names a member or header. */
interface Attributes {
  values: Record<string, string>;
  problems: FieldProblem[];
}

/**
 * The events of a request, in its order: one of any JSON value, one in CloudEvents' binary or structured mode, or a batch. Throws Invalid
 * with everything that is wrong; problems in a batch begin with the index of their event.
 */
export function publishedEvents(request: PublishRequest, { maxEventBytes }: { maxEventBytes: number }): PublishedEvent[] {
  const mediaType = mediaTypeOf(request.headers['content-type']);
  const body = request.body.subarray(0, 3).equals(UTF8_BOM) ? request.body.subarray(3) : request.body;
  const value = jsonOf(body);
  const reader = new EventReader(request, maxEventBytes);
  const events =
    mediaType === BATCH_TYPE
      ? reader.batch(value, body)
      : [mediaType === STRUCTURED_TYPE ? reader.structured(value, structuredTexts(body)) : reader.single(value, body)];
  if (reader.problems.length > 0) throw new Invalid(reader.problems);
  return events;
}

function jsonOf(body: Buffer): unknown {
  if (!isUtf8(body)) throw new Invalid('the body is not UTF-8');
  const text = body.toString('utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Invalid(
      text.trim() === '' ? 'the body is empty: it must be an event' : `the body is not valid JSON: ${(error as Error).message}`,
    );
  }
}

class EventReader {
  readonly problems: FieldProblem[] = [];
  private readonly trace: EventContext | undefined;
  private readonly eventName: string | undefined;
  private readonly id: string | undefined;

  constructor(
    private readonly request: PublishRequest,
    private readonly maxEventBytes: number,
  ) {
    const { traceparent, tracestate } = request.headers;
    if (typeof traceparent === 'string') this.trace = { traceparent, tracestate: typeof tracestate === 'string' ? tracestate : undefined };
    this.eventName = this.parameter('event_name');
    const problem = this.eventName === undefined ? null : emittedStreamProblem(streamOf(this.eventName));
    if (problem) this.problems.push({ field: 'event_name', message: problem });
    // an empty value counts as absent
    this.id = this.parameter('id') || undefined;
    if (this.id !== undefined) this.problems.push(...idProblems(this.id));
  }

  /** Any JSON value, with the attributes that are in `ce-` headers. */
  single(value: unknown, json: Buffer): PublishedEvent {
    return this.event(value, json, binaryAttributes(this.request));
  }

  structured(value: unknown, texts: SourceTexts, index?: number): PublishedEvent {
    const at = index === undefined ? '' : `[${index}]`;
    if (value === null || typeof value !== 'object' || Array.isArray(value)) {
      this.problems.push({ index, field: at || 'body', message: `${at || 'the body'} must be a CloudEvent: a JSON object` });
      return EMPTY;
    }
    const members = value as Record<string, unknown>;
    const attributes: Attributes = { values: structuredAttributes(members, texts), problems: structuredProblems(members) };
    let json = texts.data ?? NULL;
    if (members.data_base64 !== undefined && members.data_base64 !== null) {
      if (members.data !== undefined) attributes.problems.push({ field: 'data_base64', message: 'data_base64 must not stand beside data' });
      else if (!isBase64(members.data_base64))
        attributes.problems.push({ field: 'data_base64', message: 'data_base64 must be a string in base64' });
      else json = Buffer.from(JSON.stringify(members.data_base64));
      attributes.values.datacontentencoding = 'base64';
    }
    return this.event(members.data, json, attributes, index);
  }

  batch(value: unknown, json: Buffer): PublishedEvent[] {
    if (!Array.isArray(value)) throw new Invalid('the body must be a JSON array of CloudEvents');
    if (value.length > MAX_EVENTS) throw new Invalid(`the body has ${value.length} events; the limit is ${MAX_EVENTS}`);
    if (this.id !== undefined && value.length > 1)
      this.problems.push({ field: 'id', message: 'id names one event, not a batch of several' });
    const texts = batchTexts(json);
    return value.map((event, index) => this.structured(event, texts[index]!, index));
  }

  private parameter(name: 'event_name' | 'id'): string | undefined {
    const value = this.request.query[name];
    if (value === undefined || typeof value === 'string') return value;
    this.problems.push({ field: name, message: `${name} must be a string` });
    return undefined;
  }

  private event(value: unknown, json: Buffer, { values, problems }: Attributes, index?: number): PublishedEvent {
    const add = (field: string, message: string) => problems.push({ field, message });
    if (json.length > this.maxEventBytes) add('', `the event has ${json.length} bytes of JSON; the limit is ${this.maxEventBytes}`);
    // a level takes at least two bytes: most events are too short to need the check
    else if (json.length > 2 * MAX_JSON_DEPTH && nestsTooDeeply(value)) add('', `the event is nested deeper than ${MAX_JSON_DEPTH} levels`);
    const { heldKey } = this.request;
    const { id: givenId, time } = values;
    if (givenId) problems.push(...idProblems(givenId));
    if (time !== undefined && !(TIME.test(time) && !Number.isNaN(Date.parse(time)))) add('time', 'time must be a time by RFC 3339');
    const named = this.eventName ?? values[STREAM_ATTRIBUTE];
    const stream = streamFor(named, values.type);
    if (this.eventName === undefined && named !== undefined) {
      const problem = emittedStreamProblem(stream);
      if (problem) add(STREAM_ATTRIBUTE, problem.replace('event_name', STREAM_ATTRIBUTE));
    }
    const attributes = givenAttributes(values, this.id);
    const problem = attributesProblem(values, attributes);
    if (problem) add('', problem);
    for (const { field, message } of problems) {
      if (index === undefined) this.problems.push({ field: field || 'body', message });
      else this.problems.push({ index, field: `[${index}]${field && `.${field}`}`, message: `[${index}] ${message}` });
    }
    const emitId = attributes?.id ?? (heldKey ? repeatableKsuid(heldKey, index) : ksuid());
    return { emitId, stream, json, time, context: attributes || this.trace ? { attributes, ...this.trace } : undefined };
  }
}

function idProblems(id: string): FieldProblem[] {
  const message =
    id.length > MAX_EMIT_ID_LENGTH ? `id must be at most ${MAX_EMIT_ID_LENGTH} characters long` : !isText(id) && `id ${NOT_TEXT}`;
  return message ? [{ field: 'id', message }] : [];
}

const NULL = Buffer.from('null');
const EMPTY: PublishedEvent = { emitId: '', stream: '', json: Buffer.alloc(0) };

/** An explicit stream name must be valid; a type that cannot be a stream is only a type. */
function streamFor(named: string | undefined, type: string | undefined): Stream {
  if (named !== undefined) return streamOf(named);
  const stream = streamOf(type);
  return emittedStreamProblem(stream) === null ? stream : '';
}

/** The attributes that are stored with the event; undefined if there are none. */
function givenAttributes(values: Record<string, string>, id: string | undefined): Record<string, string> | undefined {
  const given: Record<string, string> = {};
  for (const name in values) {
    const value = values[name] as string;
    if (name === 'specversion' || name === 'time' || isOwnAttribute(name)) continue;
    if (value === '' && (name === 'id' || name === 'source' || name === 'type')) continue;
    given[name] = value;
  }
  if (id) given.id = id;
  for (const _ in given) return given;
  return undefined;
}

/** CloudEvents HTTP binding, 3.1: `ce-` headers; the content type is that of the data. */
function binaryAttributes({ headers, rawHeaders }: PublishRequest): Attributes {
  const attributes: Attributes = { values: {}, problems: [] };
  let count = 0;
  for (const header in headers) {
    if (!header.startsWith('ce-')) continue;
    count++;
    const name = header.slice(3);
    const value = percentDecoded(String(headers[header]));
    if (!isAttributeName(name)) attributes.problems.push({ field: header, message: `${header}: ${NAME_RULE}` });
    else if (value === null) attributes.problems.push({ field: header, message: `${header} must be UTF-8, percent-encoded` });
    else attributes.values[name] = value;
  }
  const { specversion } = attributes.values;
  if (specversion !== undefined && specversion !== '1.0')
    attributes.problems.push({ field: 'ce-specversion', message: 'ce-specversion must be 1.0' });
  if (count > 0) {
    const sent = rawHeaders.filter((text, at) => at % 2 === 0 && /^ce-/i.test(text)).map((name) => name.toLowerCase());
    // Node joins the values
    const repeated = sent.length > count && sent.find((name, at) => sent.indexOf(name) !== at);
    if (repeated) attributes.problems.push({ field: repeated, message: `${repeated} must be sent once` });
  }
  const type = headers['content-type'];
  if (count > 0 && type !== undefined && type !== 'application/json') attributes.values.datacontenttype ??= type;
  return attributes;
}

const NAME_RULE = 'the name of an attribute must be lower-case letters and digits';

function structuredProblems(members: Record<string, unknown>): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const name of REQUIRED) {
    const value = members[name];
    if (name === 'specversion' ? value !== '1.0' : typeof value !== 'string' || value === '')
      problems.push({ field: name, message: name === 'specversion' ? 'specversion must be "1.0"' : `${name} must be a string, not empty` });
  }
  for (const [name, value] of Object.entries(members)) {
    if (NO_ATTRIBUTES.has(name) || REQUIRED.includes(name) || value === null) continue;
    if (!isAttributeName(name)) problems.push({ field: name.slice(0, 100), message: `${name.slice(0, 100)}: ${NAME_RULE}` });
    else if (!['string', 'number', 'boolean'].includes(typeof value))
      problems.push({ field: name, message: `${name} must be a string, a number or a boolean` });
  }
  return problems;
}

const isBase64 = (value: unknown): boolean =>
  typeof value === 'string' && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value);
