import type { EmittedEvent, EmitterId, EventPlace, Stream, WebhookId } from '#contracts';

/** An event on its way to a webhook: all that it takes to send it, now or later. */
export interface Delivery {
  webhookId: WebhookId;
  place: EventPlace;
  emitterId: EmitterId;
  stream: Stream;
  emitId: string;
  /** The event's JSON, byte for byte. */
  json: Buffer;
  /** When it happened, where the emitter says so. */
  time?: string;
}

export const deliveryOf = ({ place, emitterId, stream, emitId, json, time }: EmittedEvent, webhookId: WebhookId): Delivery => ({
  webhookId,
  place,
  emitterId,
  stream,
  emitId,
  json,
  time,
});

/** One try, as the API shows it. */
export interface Attempt {
  /** When it began, in ms. */
  ts: number;
  status_code: number | null;
  duration_ms: number;
  error: string | null;
  /** The first KB of the answer. */
  response_body: string | null;
}
