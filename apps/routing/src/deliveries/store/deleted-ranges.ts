import { type DeletedRange, EVERY_STREAM, type EventPlace } from '#events';

const FIRST: EventPlace = { ms: 0, seq: 0 };

/** SQL: deleted ranges, for `isInRange` and `isDeleted`. Its parameters are `deletedValues`. */
export const DELETED = `
  unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  WITH ORDINALITY AS deleted (emitter_id, start_ms, start_seq, end_ms, end_seq, before_ms, before_seq, stream, nth)`;

export const deletedValues = (ranges: DeletedRange[]): unknown[] => [
  ranges.map(({ emitterId }) => emitterId),
  ...placeArrays(ranges.map(({ start }) => start ?? FIRST)),
  ...placeArrays(ranges.map(({ end, place }) => end ?? place)),
  ...placeArrays(ranges.map(({ place }) => place)),
  ranges.map(({ stream }) => stream),
];

const placeArrays = (places: EventPlace[]): [number[], number[]] => [places.map(({ ms }) => ms), places.map(({ seq }) => seq)];

/** SQL: whether an event, or the event of a delivery, is in a range and before its deletion, whatever its stream. */
export const isInRange = (table: string): string =>
  `${table}.emitter_id = deleted.emitter_id AND (ms, seq) >= (start_ms, start_seq) AND (ms, seq) <= (end_ms, end_seq) AND (ms, seq) < (before_ms, before_seq)`;

/** SQL: the same with its stream. */
export const isDeleted = (table: string): string =>
  `${isInRange(table)}
   AND (deleted.stream IS NULL OR ${table}.stream = deleted.stream OR (deleted.stream = '${EVERY_STREAM}' AND NOT starts_with(${table}.stream, '$')))`;
