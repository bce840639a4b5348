import { ceTypeOf, eventIdOf } from '#contracts';
import type { Delivery } from './delivery.js';
import { messageId } from './message-id.js';
import { signatureHeader } from './signature.js';

/** The headers of a delivery: Standard Webhooks, and CloudEvents in binary mode. */
export function deliveryHeaders(
  delivery: Delivery,
  { nowMs, keys, userAgent }: { nowMs: number; keys: Buffer[]; userAgent: string },
): Record<string, string> {
  const id = messageId(delivery);
  const timestamp = Math.floor(nowMs / 1000);
  return {
    'content-type': 'application/json',
    'user-agent': userAgent,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatureHeader(id, timestamp, delivery.json, keys),
    'ce-specversion': '1.0',
    'ce-id': eventIdOf(delivery.place),
    'ce-source': delivery.emitterId,
    'ce-type': headerText(ceTypeOf(delivery.stream)),
    'ce-time': timeOf(delivery),
  };
}

/** When the event happened; what isn't a time gives way to the log's. */
function timeOf({ time, place }: Delivery): string {
  const ms = time === undefined ? NaN : Date.parse(time);
  return new Date(Number.isNaN(ms) ? place.ms : ms).toISOString();
}

/** CloudEvents' HTTP binding 3.1.3.2: all but printable ASCII, and `"` and `%`, is percent-encoded UTF-8. */
const headerText = (text: string): string => (/^[!#$&-~]*$/.test(text) ? text : text.replace(/[^!#$&-~]/gu, percentEncoded));

const percentEncoded = (character: string): string =>
  [...Buffer.from(character, 'utf8')].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
