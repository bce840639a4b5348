import { createHmac, type KeyObject } from 'node:crypto';

/**
 * The `webhook-signature` header of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`, one signature a key.
 * A receiver accepts the message when one of them fits, so two live secrets can overlap.
 *
 * @param timestamp Unix seconds, as the header `webhook-timestamp` has it
 */
export const signatureHeader = (id: string, timestamp: number, body: Buffer, keys: KeyObject[]): string =>
  keys.map((key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`).join(' ');
