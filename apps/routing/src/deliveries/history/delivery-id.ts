import { base62, type Id, isId } from '#contracts';
import type { EventPlace } from '#events';

/** As in `base62`. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const MS_LENGTH = 8;
const SEQ_LENGTH = 10;

/** The id of a delivery: its event's position, so that ids sort by emission. It is unique per webhook. */
export const deliveryIdOf = ({ ms, seq }: EventPlace): Id<'delivery'> =>
  `del_${base62(BigInt(ms), MS_LENGTH)}${base62(BigInt(seq), SEQ_LENGTH)}`;

/** The position in a delivery's id, or null if the text is not such an id. */
export function placeOfDelivery(id: string): EventPlace | null {
  if (!isId('delivery', id)) return null;
  const digits = id.slice('del_'.length);
  if (digits.length !== MS_LENGTH + SEQ_LENGTH) return null;
  const place = { ms: Number(valueOf(digits.slice(0, MS_LENGTH))), seq: Number(valueOf(digits.slice(MS_LENGTH))) };
  return Number.isSafeInteger(place.ms) && Number.isSafeInteger(place.seq) ? place : null;
}

const valueOf = (digits: string): bigint => [...digits].reduce((value, digit) => value * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
