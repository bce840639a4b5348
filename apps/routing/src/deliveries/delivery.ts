import type { EmitterId, WebhookId } from '#contracts';
import type { EmittedEvent, EventContext, EventPlace, Stream } from '#events';

/** An event on its way to a webhook: everything needed to send it, now or later. */
export interface Delivery {
  webhookId: WebhookId;
  place: EventPlace;
  emitterId: EmitterId;
  stream: Stream;
  emitId: string;
  /** The event's JSON, byte for byte. */
  json: Buffer;
  /** When it happened, if the emitter states it. */
  time?: string;
  /** The attributes of the event's producer. */
  context?: EventContext;
}

export const deliveryOf = ({ place, emitterId, stream, emitId, json, time, context }: EmittedEvent, webhookId: WebhookId): Delivery => ({
  webhookId,
  place,
  emitterId,
  stream,
  emitId,
  json,
  time,
  context,
});

/** From this size on, a buffer of which a slice is used is worth a copy of the slice: a fetch has up to 16 MiB. */
const LARGE_BUFFER = 256 * 1024;
const copies = new WeakMap<Buffer, Buffer>();

/** The same bytes, which do not keep a much larger buffer in memory. Deliveries of one event share the copy. */
export function detached(json: Buffer): Buffer {
  if (json.buffer.byteLength < Math.max(LARGE_BUFFER, 2 * json.length)) return json;
  let copy = copies.get(json);
  if (!copy) copies.set(json, (copy = Buffer.from(json)));
  return copy;
}

/** Of a parked delivery in memory, beside its JSON, its context and its attempts. */
export const OVERHEAD_BYTES = 1024;

/** One attempt, as the API returns it. */
export interface Attempt {
  /** When it began, in ms. */
  ts: number;
  status_code: number | null;
  duration_ms: number;
  error: string | null;
  /** The first KB of the response; null also for older attempts of a delivery. */
  response_body: string | null;
}

/** The attempt with its members in the order of the API. Those that were stored as jsonb have the order of PostgreSQL, by length. */
export const inOrder = ({ ts, status_code, duration_ms, error, response_body }: Attempt): Attempt => ({
  ts,
  status_code,
  duration_ms,
  error,
  response_body,
});

/** The number of attempts that are stored per delivery, and how many of them with the response: a list has a hundred deliveries. */
const KEPT_ATTEMPTS = 20;
const KEPT_BODIES = 3;

/** The attempts that are stored of a delivery: the newest ones, oldest first. */
export const keptAttempts = (attempts: Attempt[]): Attempt[] =>
  attempts
    .slice(-KEPT_ATTEMPTS)
    .map((attempt, nth, { length }) => (nth < length - KEPT_BODIES ? { ...attempt, response_body: null } : attempt));

/** The outcome of an attempt. */
export interface Outcome {
  attempt: Attempt;
  /** `gone`: the receiver will never return (410). */
  verdict: 'delivered' | 'failed' | 'gone';
  timeout: boolean;
  /** The number of attempts in the retry schedule so far. */
  tries: number;
  /** Until the next attempt, in ms; null: there is none. */
  pauseMs: number | null;
  /** The pause that the receiver requested, in ms. */
  retryAfterMs: number | null;
}
