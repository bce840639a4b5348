import { base62, fromBase62, type Id, isId, type WebhookId } from '#contracts';
import type { EventPlace } from '#events';

const MS_LENGTH = 8;
const SEQ_LENGTH = 10;

/** The id of a delivery: its event's place, so that ids sort by emission, and its webhook, so that ids are unique. */
export const deliveryIdOf = ({ ms, seq }: EventPlace, webhookId: WebhookId): Id<'delivery'> =>
  `del_${base62(BigInt(ms), MS_LENGTH)}${base62(BigInt(seq), SEQ_LENGTH)}${webhookId.slice('wh_'.length)}`;

/** The place in the id of a delivery to this webhook, or null if the text is not such an id. */
export function placeOfDelivery(id: string, webhookId: WebhookId): EventPlace | null {
  if (!isId('delivery', id)) return null;
  const digits = id.slice('del_'.length);
  if (digits.slice(MS_LENGTH + SEQ_LENGTH) !== webhookId.slice('wh_'.length)) return null;
  const numberAt = (start: number, length: number) => Number(fromBase62(digits.slice(start, start + length)));
  const place = { ms: numberAt(0, MS_LENGTH), seq: numberAt(MS_LENGTH, SEQ_LENGTH) };
  return Number.isSafeInteger(place.ms) && Number.isSafeInteger(place.seq) ? place : null;
}
