import { hash } from 'node:crypto';
import type { Delivery } from '../delivery.js';

/**
 * The `webhook-id`: the receiver's idempotency key. It's made of the emit and not of the event's place, so it's the same
 * over all attempts, and also when a producer's retry put one emit into the log twice. An emit id is unique only with
 * its emitter and stream.
 */
export const messageId = ({
  emitterId,
  stream,
  emitId,
  webhookId,
}: Pick<Delivery, 'emitterId' | 'stream' | 'emitId' | 'webhookId'>): string =>
  `msg_${hash('sha256', `${webhookId}\n${emitterId}\n${stream}\n${emitId}`, 'hex').slice(0, 32)}`;
