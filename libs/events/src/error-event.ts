import { isUtf8 } from 'node:buffer';
import { type EmitterId, jsonNestsTooDeeply, MAX_JSON_DEPTH, storableText, type UserId } from '#contracts';
import { type Cause, eventRecord, type EventToProduce } from './event-record.js';
import { memberOf, textOf } from './json-scan.js';
import { checkJson, NotJson, TooMuchJson } from './json-text.js';
import { ERRORS_STREAM, type Stream } from './streams.js';

/** An error as the stream `$errors` shows it. */
export interface ErrorEvent {
  code: string;
  message: string;
  stack: string | undefined;
  /** ISO 8601. */
  ts: string;
  /** The event that caused the error: see `originalEvent` and `originalValue`. */
  originalEvent: unknown;
  /** Where the error occurred: see `errorContext`. */
  context: Record<string, unknown>;
}

/** JSON that is not parsed, because parsing it and serializing it again can take 0.1 s. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** The JSON of an event on `$errors`. */
export function errorEventJson({ code, message, stack, ts, originalEvent, context }: ErrorEvent): Buffer {
  const original = originalEvent instanceof JsonText ? originalEvent.text : (JSON.stringify(originalEvent) as string | undefined);
  const members = [
    `"error":${JSON.stringify({ code, cellId: null, ts, stack, message })}`,
    ...(original === undefined ? [] : [`"original_event":${original}`]),
    `"original_context":${JSON.stringify(context)}`,
  ];
  return Buffer.from(`{${members.join()}}`);
}

const PLATFORM_VERSION = '0.1.0';

/**
 * The `original_context` of an error.
 *
 * @param origin.id a KSUID
 * @param origin.ts ISO 8601
 * @param origin.sourceType what triggered the emitter
 * @param origin.runId absent: the error is not of a run
 * @param origin.version of the source's deployment; absent: the error is not of a run, and its `deployment_id` is the same for all deployments
 */
export const errorContext = ({
  id,
  ts,
  emitterId,
  sourceType,
  ownerId,
  runId,
  version,
}: {
  id: string;
  ts: string;
  emitterId: EmitterId;
  sourceType: string;
  ownerId: UserId | undefined;
  runId?: string;
  version?: number;
}): Record<string, unknown> => ({
  id,
  run_id: runId,
  ts,
  workflow_id: emitterId.startsWith('p_') ? emitterId : null,
  source_id: emitterId.startsWith('dc_') ? emitterId : null,
  deployment_id: `d_${emitterId.replace(/^[a-z]+_/, '')}${version ?? ''}`,
  source_type: sourceType,
  verified: false,
  owner_id: ownerId,
  platform_version: PLATFORM_VERSION,
});

/** An error of an emitter that is not the error of a run. */
interface ErrorReport {
  emitterId: EmitterId;
  code: string;
  message: string;
  /** ISO 8601. */
  ts: string;
  emitId: string;
  originalEvent: unknown;
  /** In addition to what each error has. */
  context?: Record<string, unknown>;
  /** undefined: the emitter is not known yet. */
  ownerId: UserId | undefined;
  hops?: number;
  cause?: Cause;
}

/** The record of the event on the emitter's `$errors`. */
export function errorReport({
  emitterId,
  code,
  message,
  ts,
  emitId,
  originalEvent,
  context,
  ownerId,
  hops,
  cause,
}: ErrorReport): EventToProduce {
  const json = errorEventJson({
    ...{ code, message, stack: `${code}: ${message}`, ts, originalEvent },
    context: { ...errorContext({ id: emitId, ts, emitterId, sourceType: 'event', ownerId }), ...context },
  });
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId, json, time: ts, hops, cause });
}

/** The largest event that an error contains, in bytes. */
const MAX_ORIGINAL_BYTES = 512 * 1024;

const TRUNCATED = { $truncated: true };

/**
 * The `original_event` of an error: the event, or `{"$truncated": true}` if the event is too large for an error event.
 * @param json that has been parsed before
 */
export function originalEvent(json: Buffer | string): JsonText | typeof TRUNCATED {
  if (Buffer.byteLength(json) > MAX_ORIGINAL_BYTES) return TRUNCATED;
  const text = json.toString();
  return jsonNestsTooDeeply(text, MAX_JSON_DEPTH - 1) ? TRUNCATED : new JsonText(text);
}

/**
 * The `original_event` of an error about a record that is not an event: its JSON, its text as a string if it is not JSON, or its bytes as
 * `{"data_base64": …}` if they are not text. `{"$truncated": true}` if it is too large for an error event.
 */
export function originalValue(value: Buffer | null): unknown {
  if (value === null) return null;
  if (value.length > MAX_ORIGINAL_BYTES) return TRUNCATED;
  if (!isUtf8(value)) return bounded({ data_base64: value.toString('base64') });
  try {
    checkJson(value, MAX_JSON_DEPTH - 1);
    return new JsonText(value.toString('utf8'));
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return error instanceof TooMuchJson ? TRUNCATED : bounded(value.toString('utf8'));
  }
}

/** Serializing can lengthen a value: a control character takes six bytes. */
const bounded = (value: unknown): unknown => (Buffer.byteLength(JSON.stringify(value)) > MAX_ORIGINAL_BYTES ? TRUNCATED : value);

/** Whether an event is on `$errors` and has this code. */
export const isErrorEvent = ({ stream, json }: { stream: Stream; json: Buffer }, code: string): boolean =>
  stream === ERRORS_STREAM && textOf(memberOf(memberOf(json, 'error'), 'code')) === code;

const MESSAGE_LENGTH = 500;
const CODE_LENGTH = 128;
/** A character of a string takes at most three bytes of UTF-8. */
const MESSAGE_BYTES = 3 * MESSAGE_LENGTH;

/** The code and the message of an event on `$errors`. A producer outside may have emitted any JSON value there, so it is not parsed. */
export function readErrorEvent(json: Buffer): { code: string; message: string } {
  const member = memberOf(json, 'error');
  const error = member === undefined || member.equals(NULL) ? json : member;
  const text = (name: string): string | undefined => textOf(memberOf(error, name)) || undefined;
  const message = text('message') ?? text('stack')?.split('\n', 1)[0] ?? textOf(error) ?? json.toString('utf8', 0, MESSAGE_BYTES);
  const code = text('code') ?? text('name') ?? 'Error';
  return { code: storableText(code.slice(0, CODE_LENGTH)), message: storableText(message.slice(0, MESSAGE_LENGTH)) };
}

const NULL = Buffer.from('null');
