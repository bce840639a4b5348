import { isUtf8 } from 'node:buffer';

/**
 * The attributes of an event that Sluice itself does not use. They reach webhooks and workflows unchanged.
 */
export interface EventContext {
  /** CloudEvents attributes by name, as text: `id`, `source`, `type`, `subject`, `datacontenttype`, `dataschema` and extensions. */
  attributes?: Readonly<Record<string, string>>;
  /** W3C trace context of the record or request that carried the event. */
  traceparent?: string;
  tracestate?: string;
}

/** CloudEvents 1.0, "Naming Conventions", which reserve `data`: in JSON, it is the payload. */
const ATTRIBUTE_NAME = /^(?!data$)[a-z0-9]{1,64}$/;
/** Names of our own attributes begin with this; a producer sets only `sluicestream`. */
const OWN = 'sluice';
/** Names the stream of an event; without it the type does. */
export const STREAM_ATTRIBUTE = 'sluicestream';
/** The largest attributes of an event, in bytes of HTTP headers: common servers accept 8 to 16 KB of headers in all. */
export const MAX_ATTRIBUTES_BYTES = 8 * 1024;
/** Each is a header of the record, which every reader of the topic decodes. */
export const MAX_ATTRIBUTES = 64;

/** CloudEvents 1.0 forbids that these are empty; its SDKs refuse such an event. */
const NOT_EMPTY = new Set(['id', 'source', 'type', 'subject', 'dataschema', 'datacontenttype']);

export const isAttributeName = (name: string): boolean => ATTRIBUTE_NAME.test(name);

/** Whether the attribute is one of Sluice's: those of a producer are overwritten. */
const isOwnAttribute = (name: string): boolean => name.startsWith(OWN);

/**
 * The attributes of an event that its producer has set, without those that Sluice always sets; undefined if there are none. Those that must not be empty count
 * as absent if they are, and so do `id`, `source` and `type` with the value that Sluice has set.
 */
export function producersAttributes(
  attributes: Readonly<Record<string, string>>,
  set: { id?: string; source?: string; type?: string } = {},
): Record<string, string> | undefined {
  const given: Record<string, string> = {};
  let any = false;
  for (const name in attributes) {
    const value = attributes[name] as string;
    if (name === 'specversion' || name === 'time' || isOwnAttribute(name)) continue;
    if (value === '' && NOT_EMPTY.has(name)) continue;
    if ((name === 'id' || name === 'source' || name === 'type') && value === set[name]) continue;
    given[name] = value;
    any = true;
  }
  return any ? given : undefined;
}

/** The problem of an event's attributes, or null. `given`: the attributes that are passed on. */
export function attributesProblem(
  attributes: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>> | undefined,
): string | null {
  // CloudEvents forbids it, and PostgreSQL has no text with it
  for (const name in attributes) if (attributes[name]?.includes('\0')) return `the attribute ${name} holds a NUL character`;
  let bytes = 0;
  let count = 0;
  for (const name in given) {
    bytes += name.length + encodedLength(given[name] as string);
    count++;
  }
  if (count > MAX_ATTRIBUTES) return `the event has ${count} CloudEvents attributes; the limit is ${MAX_ATTRIBUTES}`;
  return bytes > MAX_ATTRIBUTES_BYTES
    ? `the CloudEvents attributes take ${bytes} bytes as headers; the limit is ${MAX_ATTRIBUTES_BYTES}`
    : null;
}

/** RFC 3339, with a fraction of at most 100 digits: it becomes a header. */
const TIME = /^(\d{4}-\d\d-\d\d)[Tt](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,100})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** A leap second, which `Date` does not know: it is the last one of an hour or, in some time zones, of half an hour. */
const LEAP_SECOND = /:([25]9):60(?=[.Zz+-])/;

/** Whether the text can be the `time` of an event. `Date.parse` alone takes 30 February for 2 March. */
export function isTime(text: string): boolean {
  const date = TIME.exec(text)?.[1];
  return (
    date !== undefined && !Number.isNaN(Date.parse(text.replace(LEAP_SECOND, ':$1:59'))) && new Date(date).toISOString().startsWith(date)
  );
}

/** W3C Trace Context, 3.3.1.5: at least 512 characters of a `tracestate` are passed on. A longer one is dropped as a whole. */
const TRACE = /^[\x20-\x7e]{1,512}$/;

/** The value of `traceparent` or `tracestate` that is passed on; undefined if it cannot be a header, or is too long. */
export const traceToPassOn = (value: string | undefined): string | undefined =>
  value !== undefined && TRACE.test(value) ? value : undefined;

/** The subtype is `json`, or ends with `+json` (CloudEvents JSON format, 3.1). */
const JSON_TYPE = /^[\w.+-]+\/(?:[\w.+-]+\+)?json *(?:;|$)/i;
/** It would turn the binary mode of a delivery or record into a structured one. */
const CLOUD_EVENTS_TYPE = /^application\/cloudevents/i;
const HEADER_TEXT = /^[\x20-\x7e]{1,256}$/;

/** Whether a `datacontenttype` can be the content type of an event's JSON. */
export const isJsonContentType = (type: string): boolean => JSON_TYPE.test(type) && !CLOUD_EVENTS_TYPE.test(type) && HEADER_TEXT.test(type);

const PLAIN = /^[!#$&-~]*$/;

/** Text as a header value: all but printable ASCII, and `"` and `%`, is percent-encoded UTF-8 (CloudEvents HTTP binding, 3.1.3.2). */
export const percentEncoded = (text: string): string => (PLAIN.test(text) ? text : text.replace(/[^!#$&-~]/gu, encodedCharacter));

/** The length of the encoded text; encoding it takes ten times as long. */
function encodedLength(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let plain = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x20 && code < 0x7f && code !== 0x22 && code !== 0x25) plain++;
  }
  return plain + 3 * (Buffer.byteLength(text) - plain);
}

const encodedCharacter = (character: string): string =>
  [...Buffer.from(character, 'utf8')].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');

/**
 * The text of a header value that Node has read as Latin-1: quotes are removed, percent-encoding is decoded. Null when the bytes are not
 * UTF-8.
 */
export function percentDecoded(header: string): string | null {
  const text = /^".*"$/s.test(header) ? header.slice(1, -1).replace(/\\(.)/gs, '$1') : header;
  if (!/[%\x80-\xff]/.test(text)) return text;
  const bytes = Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    'latin1',
  );
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}
