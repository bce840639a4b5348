import { depthOf } from '../wire/json-text.js';
import { streamNameProblem } from '../wire/names.js';
import type { EmitMeta, GuestLimits, OutputItem } from '../wire/messages.js';

const year = 366 * 24 * 3600 * 1000;
const longest = { id: 4096, name: 128, summary: 65_536 };

/**
 * The message of one call of `$emit`, and its size in bytes: of the event's JSON and of the texts beside it. A value that cannot be stored unchanged throws;
 * nothing is truncated.
 * @param received the event of the run: an HTTP request that is emitted as it was received fits, because its endpoint has accepted it
 * @throws RangeError or TypeError in the component's own code
 */
export function emitted(event: unknown, meta: unknown, limits: GuestLimits, received?: unknown): { item: OutputItem; bytes: number } {
  let text = JSON.stringify(event === undefined ? null : event);
  if (text === undefined) throw new TypeError(`$emit: a value of type ${typeof event} is not JSON`);
  let bytes = Buffer.byteLength(text);
  if (bytes > limits.eventBytes && event === received) {
    text = smallerRequest(event as HttpRequest, limits) ?? text;
    bytes = Buffer.byteLength(text);
  }
  if (bytes > limits.eventBytes) throw new RangeError(`$emit: the event has ${bytes} bytes of JSON; the limit is ${limits.eventBytes}`);
  if (depthOf(text) > limits.eventDepth) throw new RangeError(`$emit: the event is nested deeper than ${limits.eventDepth} levels`);
  const described = metaOf(meta);
  return { item: ['emit', text, described], bytes: bytes + metaBytes(described) };
}

/** The members of the event of an HTTP request that hold its body or describe it. */
interface HttpRequest {
  headers?: Record<string, unknown>;
  body?: unknown;
  bodyRaw?: unknown;
  bodyBase64?: boolean;
}

/**
 * A request with its body once instead of twice: as `body`, if that is small enough and complete, otherwise in base64, in which JSON escapes nothing.
 * Undefined if it is not a request.
 */
function smallerRequest(event: HttpRequest, { eventBytes }: GuestLimits): string | undefined {
  const { bodyRaw, ...rest } = event;
  if (typeof bodyRaw !== 'string') return undefined;
  const { body, bodyBase64, ...head } = rest;
  // the fields of a form do not contain its files
  const isForm = String(head.headers?.['content-type']).startsWith('multipart/');
  const isComplete = body === bodyRaw || (!bodyBase64 && !isForm);
  const text = JSON.stringify(rest);
  if (isComplete && Buffer.byteLength(text) <= eventBytes) return text;
  return JSON.stringify({ ...head, bodyRaw: bodyBase64 ? bodyRaw : Buffer.from(bodyRaw).toString('base64'), bodyBase64: true });
}

function metaOf(meta: unknown): EmitMeta {
  if (meta === undefined || meta === null) return {};
  if (typeof meta !== 'object') throw new TypeError('$emit: the second argument must be an object');
  const { id, name, summary, ts, delivery_ts: deliveryTs } = meta as Record<string, string | number | null | undefined>;
  return {
    id: textOf('id', id),
    name: streamOf(name),
    summary: textOf('summary', summary),
    ts: exact(timeOf(ts)),
    deliveryTs: deliveryOf(deliveryTs),
  };
}

const metaBytes = ({ id = '', name = '', summary = '' }: EmitMeta): number =>
  Buffer.byteLength(id) + Buffer.byteLength(name) + Buffer.byteLength(summary);

function streamOf(value: string | number | null | undefined): string | undefined {
  const name = textOf('name', value);
  const problem = name === undefined ? null : streamNameProblem(name);
  if (problem !== null) throw withCode('BadStreamName', `$emit: name ${problem}`);
  return name;
}

/** The code under which `$errors` shows the error. */
const withCode = (code: string, message: string): RangeError => Object.assign(new RangeError(message), { code });

function textOf(field: keyof typeof longest, value: string | number | object | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  if (typeof text !== 'string') return undefined;
  // an emoji is one character in the name of a stream, wherever events come from
  const { length } = field === 'name' ? [...text] : text;
  if (length > longest[field]) throw new RangeError(`$emit: ${field} has ${length} characters; the limit is ${longest[field]}`);
  return text;
}

/** A year, or a date without hyphens: as seconds, they would be a time in 1970. */
const DIGITS_OF_DATE = /^\s*(?:19|20)\d\d(?:\d{4})?\s*$/;

/**
 * A Date, an ISO text, or a number of seconds or milliseconds, as milliseconds. Anything else counts as absent: `new Date(item.missing)` is common, and so
 * is `item.date && …`, which may be false.
 */
function timeOf(value: unknown): number | undefined {
  if (typeof value === 'object' && value !== null) return millisecondsOf(value);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') return undefined;
  if (typeof value === 'string' && (value.trim() === '' || DIGITS_OF_DATE.test(value))) return undefined;
  const number = Number(value);
  const ms = Number.isNaN(number) && typeof value === 'string' ? Date.parse(value) : number;
  if (!Number.isFinite(ms)) return undefined;
  // 1e11 seconds are the year 5138, 1e11 milliseconds the year 1973
  const seconds = !Number.isNaN(number) && Math.abs(ms) < 1e11;
  return Math.round(seconds ? ms * 1000 : ms);
}

/** Of a Date, or of an object with the same meaning, such as those of dayjs, moment and luxon. */
function millisecondsOf(date: object): number | undefined {
  const ms: unknown = typeof date.valueOf === 'function' ? date.valueOf() : undefined;
  return typeof ms === 'number' && Number.isFinite(ms) ? Math.round(ms) : undefined;
}

/** Unlike `ts`, anything else throws: the event would be emitted at once instead of later. */
function deliveryOf(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const ms = timeOf(value);
  if (ms === undefined || ms < 0)
    throw new RangeError('$emit: delivery_ts must be a Date, an ISO 8601 text with hyphens, or a number of seconds or milliseconds');
  if (ms > Date.now() + year) throw withCode('DeliveryTooLate', '$emit: delivery_ts is more than a year ahead');
  return exact(ms);
}

/** A value that is too large for a time in ms (nanoseconds, for example) counts as absent. */
function exact(ms: number | undefined): number | undefined {
  return Number.isSafeInteger(ms) ? ms : undefined;
}
