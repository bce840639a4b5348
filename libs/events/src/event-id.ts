import { Invalid } from '#contracts';

/**
 * The place of an event. Its text, `<ms>-<seq>`, is the event id. It is computed from the position of the event's record, so the store, the router
 * and the live streams agree on it without coordination. ms = the record's LogAppendTime in milliseconds, made monotonic
 * within its partition; seq = offset × 4096 + partition, unique in the topic.
 */
export interface EventPlace {
  ms: number;
  seq: number;
}

/** Places outside of every log, for ranges without an end. */
export const BEFORE_ALL: EventPlace = { ms: -1, seq: -1 };
export const AFTER_ALL: EventPlace = { ms: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/** The maximum number of a topic's partitions. */
export const PARTITIONS = 4096;
/** Without leading zeros: an event has one id. */
const PATTERN = /^(0|[1-9]\d{0,14})-(0|[1-9]\d{0,15})$/;

export const eventPlace = (record: { clock: number; offset: number; partition: number }): EventPlace => ({
  ms: record.clock,
  seq: record.offset * PARTITIONS + record.partition,
});

/** The partition and offset of an event's record: the inverse of `eventPlace`. */
export const logPlaceOf = ({ seq }: EventPlace): { partition: number; offset: number } => ({
  partition: seq % PARTITIONS,
  offset: Math.floor(seq / PARTITIONS),
});

export const eventIdOf = (place: EventPlace): string => `${place.ms}-${place.seq}`;

/** The place that an event id denotes, or null if the text is not an event id. The event need not exist. */
export function parseEventId(text: string): EventPlace | null {
  const match = PATTERN.exec(text);
  if (!match) return null;
  const [ms, seq] = [Number(match[1]), Number(match[2])];
  return Number.isSafeInteger(seq) ? { ms, seq } : null;
}

export const notAnEventId = (field: string): string => `${field} must be an event id, <milliseconds>-<sequence>`;

/** As `parseEventId`. @throws Invalid, which names the field */
export function requireEventId(text: string, field = 'event_id'): EventPlace {
  const place = parseEventId(text);
  if (!place) throw new Invalid([{ field, message: notAnEventId(field) }]);
  return place;
}

export const comparePlaces = (a: EventPlace, b: EventPlace): number => a.ms - b.ms || a.seq - b.seq;
