import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { type FieldProblem, Invalid, isText, ksuid, NOT_TEXT } from '#contracts';
import {
  attributesProblem,
  beginsArray,
  checkJson,
  emittedStreamProblem,
  type EventContext,
  eventsOfBatch,
  isAttributeName,
  isTime,
  MAX_EMIT_ID_LENGTH,
  type Member,
  NotJson,
  percentDecoded,
  producersAttributes,
  type Stream,
  STREAM_ATTRIBUTE,
  streamOf,
  streamOfType,
  structuredAttributes,
  type StructuredEvent,
  structuredEvent,
  tooLongAttribute,
  TooMuchJson,
  withoutBom,
} from '#events';
import type { FirstRequest } from '../idempotency/idempotency.repository.js';
import { repeatableKsuid } from '../idempotency/new-ids.js';
import { BATCH_TYPE, mediaTypeOf, STRUCTURED_TYPE } from '../http/content-types.js';
import { mistypedParameters } from '../http/request.pipe.js';
import { sentHeaders } from '../http/sent-headers.js';

/** A request to publish. `event_name` and `id` of the query win over the CloudEvents attributes. */
export interface PublishRequest {
  headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  rawHeaders: string[];
  body: Buffer;
  /** As the server has parsed it: an array if a parameter is repeated. */
  query: { event_name?: unknown; id?: unknown };
  /** Of a request with an `Idempotency-Key`. */
  heldKey?: FirstRequest;
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

const PARAMETERS = ['event_name', 'id'] as const;
const MAX_EVENTS = 500;
/** Of a batch: each takes 3 µs of the main thread here, and time in every reader of the topic. */
const MAX_BATCH_ATTRIBUTES = 10_000;
const REQUIRED = ['specversion', 'id', 'source', 'type'];

/** The attributes of an event, and their problems. Each problem names a member or header. `prefix`: of the headers. */
interface Attributes {
  values: Record<string, string>;
  problems: FieldProblem[];
  prefix: 'ce-' | '';
}

/**
 * The events of a request, in its order: one of any JSON value, one in CloudEvents' binary or structured mode, or a batch. Throws Invalid
 * with what is wrong; problems in a batch begin with the index of their event.
 *
 * The bodies are scanned, not parsed: the values are not needed, and parsing a megabyte can take 0.3 s, in which no other request is handled.
 */
export function publishedEvents(request: PublishRequest, { maxEventBytes }: { maxEventBytes: number }): PublishedEvent[] {
  const mediaType = mediaTypeOf(request.headers['content-type']);
  const body = withoutBom(request.body);
  if (!isUtf8(body)) throw new Invalid('the body is not UTF-8');
  const reader = new EventReader(request, maxEventBytes);
  try {
    const events =
      mediaType === BATCH_TYPE ? reader.batch(body) : [mediaType === STRUCTURED_TYPE ? reader.structured(body) : reader.single(body)];
    if (reader.problems.length > 0) throw new Invalid(reader.problems);
    return events;
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    if (error instanceof TooMuchJson) {
      reader.problem('', error.message);
      throw new Invalid(reader.problems);
    }
    const isEmpty = body.toString('utf8').trim() === '';
    throw new Invalid(isEmpty ? 'the body is empty: it must be an event' : `the body is not valid JSON: ${error.message}`);
  }
}

class EventReader {
  readonly problems: FieldProblem[] = [];
  /** Of the event that is being read, in a batch. */
  private index: number | undefined;
  private readonly trace: EventContext | undefined;
  private readonly eventName: string | undefined;
  private readonly id: string | undefined;

  constructor(
    private readonly request: PublishRequest,
    private readonly maxEventBytes: number,
  ) {
    this.problems.push(...mistypedParameters(request.query, PARAMETERS));
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
  single(json: Buffer): PublishedEvent {
    // a body that is too large is not read
    if (json.length <= this.maxEventBytes) checkJson(json);
    return this.event(json, binaryAttributes(this.request));
  }

  structured(json: Buffer): PublishedEvent {
    return this.cloudEvent(structuredEvent(json));
  }

  batch(json: Buffer): PublishedEvent[] {
    if (!beginsArray(json)) throw new Invalid('the body must be a JSON array of CloudEvents');
    const events: PublishedEvent[] = [];
    let attributes = 0;
    this.index = 0;
    for (const event of eventsOfBatch(json)) {
      if (events.length === MAX_EVENTS) throw new Invalid(`the body has more than ${MAX_EVENTS} events`);
      if (!(event instanceof TooMuchJson)) attributes += event?.members.size ?? 0;
      if (attributes > MAX_BATCH_ATTRIBUTES) throw new Invalid(`the events have more than ${MAX_BATCH_ATTRIBUTES} attributes together`);
      events.push(this.cloudEvent(event));
      this.index = events.length;
    }
    if (this.id !== undefined && events.length > 1)
      this.problems.unshift({ field: 'id', message: 'id names one event, not a batch of several' });
    return events;
  }

  /** Adds a problem of the event that is being read. */
  problem(field: string, message: string): void {
    const { index } = this;
    if (index === undefined) this.problems.push({ field: field || 'body', message });
    else this.problems.push({ index, field: `[${index}]${field && `.${field}`}`, message: `[${index}] ${message}` });
  }

  private cloudEvent(event: StructuredEvent | TooMuchJson | null): PublishedEvent {
    if (event instanceof TooMuchJson) {
      this.problem('', event.message);
      return EMPTY;
    }
    if (event === null) {
      this.problem('', `${this.index === undefined ? 'the body ' : ''}must be a CloudEvent: a JSON object`);
      return EMPTY;
    }
    const attributes: Attributes = { values: structuredAttributes(event), problems: structuredProblems(event), prefix: '' };
    let json = event.data ?? NULL;
    const base64 = event.members.get('data_base64');
    if (base64 !== undefined && base64.kind !== 'null') {
      if (event.data) attributes.problems.push({ field: 'data_base64', message: 'data_base64 must not stand beside data' });
      else if (!isBase64(base64)) attributes.problems.push({ field: 'data_base64', message: 'data_base64 must be a string in base64' });
      else json = Buffer.from(JSON.stringify(base64.text));
      attributes.values.datacontentencoding = 'base64';
    }
    return this.event(json, attributes);
  }

  private parameter(name: (typeof PARAMETERS)[number]): string | undefined {
    const value = this.request.query[name];
    if (value === undefined || typeof value === 'string') return value;
    this.problems.push({ field: name, message: `${name} must be a string` });
    return undefined;
  }

  private event(json: Buffer, { values, problems, prefix }: Attributes): PublishedEvent {
    const add = (field: string, message: string) => problems.push({ field, message });
    const bad = (name: string, must: string) => add(prefix + name, `${prefix}${name} ${must}`);
    if (json.length > this.maxEventBytes) add('', `the event has ${json.length} bytes of JSON; the limit is ${this.maxEventBytes}`);
    const { heldKey } = this.request;
    const { id: givenId } = values;
    // an empty value counts as absent
    const time = values.time || undefined;
    if (givenId) problems.push(...idProblems(givenId, `${prefix}id`));
    const tooLong = tooLongAttribute(values);
    if (tooLong && tooLong.name !== 'id') bad(tooLong.name, `must be at most ${tooLong.longest} characters long`);
    if (time !== undefined && !isTime(time)) bad('time', 'must be a time by RFC 3339');
    const named = this.eventName ?? values[STREAM_ATTRIBUTE];
    const stream = named === undefined ? streamOfType(values.type) : streamOf(named);
    if (this.eventName === undefined && named !== undefined) {
      const problem = emittedStreamProblem(stream);
      if (problem) bad(STREAM_ATTRIBUTE, problem.replace('event_name ', ''));
    }
    const attributes = producersAttributes(this.id === undefined ? values : { ...values, id: this.id });
    const problem = attributesProblem(values, attributes);
    if (problem) add('', problem);
    for (const { field, message } of problems) this.problem(field, message);
    const emitId = attributes?.id ?? (heldKey ? repeatableKsuid(heldKey, this.index) : ksuid());
    return { emitId, stream, json, time, context: attributes || this.trace ? { attributes, ...this.trace } : undefined };
  }
}

function idProblems(id: string, field = 'id'): FieldProblem[] {
  const must = id.length > MAX_EMIT_ID_LENGTH ? `must be at most ${MAX_EMIT_ID_LENGTH} characters long` : !isText(id) && NOT_TEXT;
  return must ? [{ field, message: `${field} ${must}` }] : [];
}

const NULL = Buffer.from('null');
const EMPTY: PublishedEvent = { emitId: '', stream: '', json: Buffer.alloc(0) };

/** CloudEvents HTTP binding, 3.1: `ce-` headers; the content type is that of the data. */
function binaryAttributes({ headers, rawHeaders }: PublishRequest): Attributes {
  const attributes: Attributes = { values: {}, problems: [], prefix: 'ce-' };
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
    const sent = sentHeaders(rawHeaders).filter((name) => name.startsWith('ce-'));
    const repeated = sent.length > count && sent.find((name, at) => sent.indexOf(name) !== at);
    if (repeated) attributes.problems.push({ field: repeated, message: `${repeated} must be sent once` });
  }
  const type = headers['content-type'];
  if (count > 0 && type !== undefined && type !== 'application/json') attributes.values.datacontenttype ??= type;
  return attributes;
}

const NAME_RULE = 'the name of an attribute must be 1 to 64 lower-case letters and digits, but not data';

function structuredProblems({ members }: StructuredEvent): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const name of REQUIRED) {
    const { kind, text } = members.get(name) ?? {};
    if (name === 'specversion' ? kind !== 'string' || text !== '1.0' : kind !== 'string' || text === '')
      problems.push({ field: name, message: name === 'specversion' ? 'specversion must be "1.0"' : `${name} must be a string, not empty` });
  }
  for (const [name, { kind }] of members) {
    if (name === 'data_base64' || REQUIRED.includes(name) || kind === 'null') continue;
    if (!isAttributeName(name)) problems.push({ field: name.slice(0, 100), message: `${name.slice(0, 100)}: ${NAME_RULE}` });
    else if (kind === 'nested') problems.push({ field: name, message: `${name} must be a string, a number or a boolean` });
  }
  return problems;
}

const isBase64 = ({ kind, text }: Member): boolean =>
  kind === 'string' && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text);
