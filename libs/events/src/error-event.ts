import { MAX_JSON_DEPTH, nestsTooDeeply, storableText } from '#contracts';
import { ERRORS_STREAM, type Stream } from './streams.js';

/** An error as the stream `$errors` shows it. */
export interface ErrorEvent {
  code: string;
  message: string;
  stack: string | undefined;
  /** ISO 8601. */
  ts: string;
  /** The event that caused the error: see `originalEvent`. */
  originalEvent: unknown;
  /** Where the error occurred; in this order. */
  context: Record<string, unknown>;
}

/** The JSON of an event on `$errors`. */
export const errorEventJson = ({ code, message, stack, ts, originalEvent, context }: ErrorEvent): Buffer =>
  Buffer.from(
    JSON.stringify({ error: { code, cellId: null, ts, stack, message }, original_event: originalEvent, original_context: context }),
  );

/** The largest event that an error contains, in bytes. */
const MAX_ORIGINAL_BYTES = 256 * 1024;

/** The `original_event` of an error: the event, or `{"$truncated": true}` if the event is too large for an error event. */
export function originalEvent(json: Buffer | string): unknown {
  const truncated = { $truncated: true };
  if (Buffer.byteLength(json) > MAX_ORIGINAL_BYTES) return truncated;
  const event: unknown = JSON.parse(json.toString());
  if (nestsTooDeeply(event, MAX_JSON_DEPTH - 1)) return truncated;
  // serializing can lengthen it: 1e20 becomes 21 digits
  return Buffer.byteLength(JSON.stringify(event)) > MAX_ORIGINAL_BYTES ? truncated : event;
}

/** Whether an event is on `$errors` and has this code. */
export const isErrorEvent = ({ stream, json }: { stream: Stream; json: Buffer }, code: string): boolean =>
  stream === ERRORS_STREAM && memberOf(memberOf(JSON.parse(json.toString('utf8')), 'error'), 'code') === code;

const MESSAGE_LENGTH = 500;
const CODE_LENGTH = 128;

/** The code and the message of an event on `$errors`. A producer outside may have emitted any JSON value there. */
export function readErrorEvent(json: Buffer): { code: string; message: string } {
  const event: unknown = JSON.parse(json.toString('utf8'));
  const error = memberOf(event, 'error') ?? event;
  const text = (name: string): string | undefined => {
    const value = memberOf(error, name);
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const message = text('message') ?? text('stack')?.split('\n')[0] ?? (typeof error === 'string' ? error : JSON.stringify(event));
  const code = text('code') ?? text('name') ?? 'Error';
  return { code: storableText(code.slice(0, CODE_LENGTH)), message: storableText(message.slice(0, MESSAGE_LENGTH)) };
}

const memberOf = (value: unknown, name: string): unknown =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[name] : undefined;
