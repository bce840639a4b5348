import { base62, type EmitterId, type Id, isId, type WebhookId } from '#contracts';
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

/** Of a parked delivery in memory, beside its JSON: most of it are the responses to its newest attempts. */
export const OVERHEAD_BYTES = 4096;

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

/** As in `base62`. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const MS_LENGTH = 8;
const SEQ_LENGTH = 10;

/** The id of a delivery: its event's position, so that ids sort by emission, and its webhook, so that ids are unique. */
export const deliveryIdOf = ({ ms, seq }: EventPlace, webhookId: WebhookId): Id<'delivery'> =>
  `del_${base62(BigInt(ms), MS_LENGTH)}${base62(BigInt(seq), SEQ_LENGTH)}${webhookId.slice('wh_'.length)}`;

/** The position in the id of a delivery to this webhook, or null if the text is not such an id. */
export function placeOfDelivery(id: string, webhookId: WebhookId): EventPlace | null {
  if (!isId('delivery', id)) return null;
  const digits = id.slice('del_'.length);
  if (digits.slice(MS_LENGTH + SEQ_LENGTH) !== webhookId.slice('wh_'.length)) return null;
  const place = { ms: Number(valueOf(digits.slice(0, MS_LENGTH))), seq: Number(valueOf(digits.slice(MS_LENGTH, MS_LENGTH + SEQ_LENGTH))) };
  return Number.isSafeInteger(place.ms) && Number.isSafeInteger(place.seq) ? place : null;
}

const valueOf = (digits: string): bigint => [...digits].reduce((value, digit) => value * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
