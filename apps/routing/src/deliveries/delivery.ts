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

/** One attempt, as the API returns it. */
export interface Attempt {
  /** When it began, in ms. */
  ts: number;
  status_code: number | null;
  duration_ms: number;
  error: string | null;
  /** The first KB of the response. */
  response_body: string | null;
}
