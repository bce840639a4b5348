/**
 * The id of an event, `<ms>-<seq>`, computed from its record's place in the log, so that the store, the router and the
 * live stream agree on it with no coordination. Shapes: ms = the record's LogAppendTime in milliseconds, folded so that
 * it never goes back within a partition; seq = offset × 4096 + partition, unique in the topic.
 */
export interface EventPlace {
  ms: number;
  seq: number;
}

const PARTITIONS = 4096;
const PATTERN = /^(\d{1,15})-(\d{1,16})$/;

export const eventPlace = (record: { clock: number; offset: number; partition: number }): EventPlace => ({
  ms: record.clock,
  seq: record.offset * PARTITIONS + record.partition,
});

/** Where in the log the event of this place stands: the inverse of `eventPlace`. */
export const logPlaceOf = ({ seq }: EventPlace): { partition: number; offset: number } => ({
  partition: seq % PARTITIONS,
  offset: Math.floor(seq / PARTITIONS),
});

export const eventIdOf = (place: EventPlace): string => `${place.ms}-${place.seq}`;

/** The place that an event id stands for, or null when the text isn't one. The event need not exist: ids are positions. */
export function parseEventId(text: string): EventPlace | null {
  const match = PATTERN.exec(text);
  if (!match) return null;
  const [ms, seq] = [Number(match[1]), Number(match[2])];
  return Number.isSafeInteger(seq) ? { ms, seq } : null;
}

export const comparePlaces = (a: EventPlace, b: EventPlace): number => a.ms - b.ms || a.seq - b.seq;
