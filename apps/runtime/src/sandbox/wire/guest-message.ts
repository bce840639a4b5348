import type { PackageImport } from '../sandbox.js';
import { type EmitMeta, type FromGuest, type GuestError, mostRefused, type OutputItem } from './messages.js';
import { checkJson, MAX_ITEM_ID_LENGTH, MAX_SUMMARY_LENGTH, NotJson } from '#events';
import { descriptionLimits } from './description-limits.js';
import { countTokens, depthOf } from './json-text.js';
import { isStorable, longestDbKey } from './names.js';
import { isReplyHeader } from './reply-header.js';

/** A runner process sent a message that our guest never sends, so the guest no longer controls it. */
export class ProtocolBroken extends Error {}

const lengths = {
  id: 64,
  // 128 characters, each of which may be two units of UTF-16
  name: 256,
  code: 128,
  message: 16_384,
  stack: 32_768,
  removedKey: 1_048_576,
  itemId: MAX_ITEM_ID_LENGTH,
  summary: MAX_SUMMARY_LENGTH,
  level: 16,
  logs: 65_536,
  file: 1024,
};
// An event of one megabyte in which every character is escaped, and the output that gathers before a frame is sent
const largeFrame = 3 << 20;
/** The rest of the message that has a description */
const longestEnvelope = 200;
const deepestDescription = 120;
const deepestEvent = 1000;
const deepestArgs = 50;
const deepestValue = 10_000;

/**
 * Returns the number of tokens in a frame, without parsing it. They decide what parsing costs: 8 MB of `[[],[],…]` take `JSON.parse` 80 ms of CPU
 * and 100 MB, 8 MB of text 10 ms.
 * @throws ProtocolBroken when there are more than `most`
 */
export function tokensOf(frame: Buffer, most: number): number {
  const tokens = countTokens(frame, most);
  if (tokens > most) throw new ProtocolBroken(`a frame of more than ${most} pieces`);
  return tokens;
}

/**
 * Reads a frame field by field: only known fields of known types are copied into new objects; everything else is ignored.
 * @throws ProtocolBroken
 */
export function readGuestMessage(frame: Buffer): FromGuest {
  if (frame.length > largeFrame) return readLargeReply(frame);
  const source = frame.toString();
  const message = object(parse(source));
  switch (message.t) {
    case 'ready':
      return { t: 'ready' };
    case 'pong':
      return { t: 'pong', n: integer(message.n) };
    case 'out':
      return { t: 'out', id: id(message.id), out: outputItems(message.out) };
    case 'done':
      return {
        t: 'done',
        id: id(message.id),
        out: outputItems(message.out),
        error: message.error === null ? null : guestError(message.error),
        ...(message.refused !== undefined && { refused: refusedCalls(message.refused) }),
      };
    case 'late':
      return { t: 'late', id: id(message.id), error: guestError(message.error) };
    case 'respond':
      return {
        t: 'respond',
        id: id(message.id),
        status: status(message.status),
        headers: headers(message.headers),
        body: text(message.body),
      };
    case 'described':
      if (source.length > descriptionLimits.characters + longestEnvelope || depthOf(source) > deepestDescription)
        throw new ProtocolBroken('a description too large');
      return { t: 'described', id: id(message.id), description: object(message.description) };
    case 'missing':
      return { t: 'missing', id: id(message.id), imports: packageImports(message.imports) };
    case 'rejected': {
      const line = message.line === null ? null : integer(message.line);
      const file = message.file === null ? null : text(message.file, lengths.file);
      return { t: 'rejected', id: id(message.id), message: text(message.message, descriptionLimits.message), line, file };
    }
    default:
      throw new ProtocolBroken('an unknown message');
  }
}

/**
 * Reads a frame that is longer than any but an HTTP reply. The reply's body is the last member, base64 without escapes, so it is cut out and not
 * parsed. The guest sends everything else in smaller frames.
 */
function readLargeReply(frame: Buffer): FromGuest {
  const end = frame.length - '"}'.length;
  const start = frame.lastIndexOf('"', end - 1) + 1;
  const head = Buffer.concat([frame.subarray(0, start), frame.subarray(end)]);
  if (head.length > largeFrame) throw new ProtocolBroken('a frame too large');
  const reply = readGuestMessage(head);
  if (reply.t !== 'respond' || reply.body !== '') throw new ProtocolBroken('a frame too large');
  return { ...reply, body: frame.toString('latin1', start, end) };
}

function packageImports(value: unknown): PackageImport[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > descriptionLimits.imports)
    throw new ProtocolBroken('no list of imports');
  return value.map((each: unknown): PackageImport => {
    const { specifier, kind, isStatic, line } = object(each);
    return {
      specifier: text(specifier, descriptionLimits.specifier),
      kind: kind === 'require' ? 'require' : 'import',
      isStatic: isStatic === true,
      line: line === null ? null : integer(line),
    };
  });
}

function outputItems(value: unknown): OutputItem[] {
  if (!Array.isArray(value)) throw new ProtocolBroken('no list of output');
  return value.map((item: unknown): OutputItem => {
    const [kind, ...rest] = Array.isArray(item) ? (item as unknown[]) : [];
    if (kind === 'emit') return ['emit', json(rest[0], deepestEvent), emitMeta(rest[1])];
    if (kind === 'log') {
      const args = rest[3] === null ? null : json(rest[3], deepestArgs);
      return ['log', text(rest[0], lengths.level), time(rest[1]), text(rest[2], lengths.logs), args];
    }
    if (kind === 'db')
      return rest[1] === null
        ? ['db', dbKey(rest[0], lengths.removedKey), null]
        : ['db', dbKey(rest[0], longestDbKey), json(rest[1], deepestValue)];
    throw new ProtocolBroken('unknown output');
  });
}

function dbKey(value: unknown, mostBytes: number): string {
  const key = text(value, mostBytes);
  if (Buffer.byteLength(key) > mostBytes || !isStorable(key)) throw new ProtocolBroken('a key that cannot be kept');
  return key;
}

function emitMeta(value: unknown): EmitMeta {
  const { id, name, summary, ts, deliveryTs } = object(value);
  const meta: EmitMeta = {};
  if (id !== undefined) meta.id = text(id, lengths.itemId);
  if (name !== undefined) meta.name = text(name, lengths.name);
  if (summary !== undefined) meta.summary = text(summary, lengths.summary);
  if (ts !== undefined) meta.ts = integer(ts);
  if (deliveryTs !== undefined) meta.deliveryTs = integer(deliveryTs);
  return meta;
}

function guestError(value: unknown): GuestError {
  const { name, code, message, stack } = object(value);
  return {
    name: text(name, lengths.name),
    code: code === null ? null : text(code, lengths.code),
    message: text(message, lengths.message),
    stack: text(stack, lengths.stack),
  };
}

function refusedCalls(value: unknown): GuestError[] {
  if (!Array.isArray(value) || value.length > mostRefused + 1) throw new ProtocolBroken('no list of refused calls');
  return value.map(guestError);
}

function headers(value: unknown): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, content] of Object.entries(object(value))) {
    const value = Array.isArray(content) ? content.map((each: unknown) => text(each)) : text(content);
    if (!isReplyHeader(name, value)) throw new ProtocolBroken('a bad header');
    result[name] = value;
  }
  return result;
}

function status(value: unknown): number {
  const code = integer(value);
  if (code < 200 || code > 599) throw new ProtocolBroken('a bad status');
  return code;
}

/** Text that is JSON, kept as text. */
function json(value: unknown, deepest: number): string {
  const source = text(value);
  try {
    checkJson(Buffer.from(source), deepest);
    return source;
  } catch (error) {
    throw error instanceof NotJson ? new ProtocolBroken(`no JSON: ${error.message}`) : error;
  }
}

function parse(source: string): unknown {
  try {
    return JSON.parse(source) as unknown;
  } catch {
    throw new ProtocolBroken('no JSON');
  }
}

function object(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ProtocolBroken('no object');
  return value as Record<string, unknown>;
}

function id(value: unknown): string {
  return text(value, lengths.id);
}

function text(value: unknown, longest = Infinity): string {
  if (typeof value !== 'string' || value.length > longest) throw new ProtocolBroken('no text, or too long');
  return value;
}

function integer(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new ProtocolBroken('no integer');
  return value as number;
}

/** Milliseconds that a Date can have. */
function time(value: unknown): number {
  if (typeof value !== 'number' || !(Math.abs(value) <= 8.64e15)) throw new ProtocolBroken('no time');
  return value;
}
