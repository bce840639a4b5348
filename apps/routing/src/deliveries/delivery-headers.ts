import type { KeyObject } from 'node:crypto';
import { ceTypeOf, eventIdOf } from '#contracts';
import type { Delivery } from './delivery.js';
import { messageId } from './message-id.js';
import { signatureHeader } from './signature.js';

/** The headers of a delivery: Standard Webhooks, and CloudEvents in binary mode. */
export function deliveryHeaders(
  delivery: Delivery,
  { nowMs, keys, userAgent }: { nowMs: number; keys: KeyObject[]; userAgent: string },
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

/** RFC 3339, which CloudEvents asks for. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** When the event happened, as the emitter says; what isn't a time gives way to the log's. */
const timeOf = ({ time, place }: Delivery): string =>
  time !== undefined && TIME.test(time) && !Number.isNaN(Date.parse(time)) ? time : new Date(place.ms).toISOString();

/** CloudEvents' HTTP binding 3.1.3.2: all but printable ASCII, and `"` and `%`, is percent-encoded UTF-8. */
const headerText = (text: string): string => (/^[!#$&-~]*$/.test(text) ? text : text.replace(/[^!#$&-~]/gu, percentEncoded));

const percentEncoded = (character: string): string =>
  [...Buffer.from(character, 'utf8')].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
