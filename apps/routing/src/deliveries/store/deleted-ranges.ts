import { type DeletedRange, EVERY_STREAM, type EventPlace } from '#events';

const FIRST: EventPlace = { ms: 0, seq: 0 };

/** SQL: deleted ranges, for `hasDeletedPlace` and `isDeleted`. Its parameters are `deletedValues`. */
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

/** SQL: whether an event, or the event of a delivery, has one of the places of a deletion, and is before the deletion itself. Its stream is not compared. */
export const hasDeletedPlace = (table: string): string =>
  `${table}.emitter_id = deleted.emitter_id AND (ms, seq) >= (start_ms, start_seq) AND (ms, seq) <= (end_ms, end_seq) AND (ms, seq) < (before_ms, before_seq)`;

/** SQL: whether a deletion of this stream (null: of all streams) covers the stream of an event or delivery. */
export const coversStreamOf = (table: string, deleted: string): string =>
  `(${deleted} IS NULL OR ${table}.stream = ${deleted} OR (${deleted} = '${EVERY_STREAM}' AND NOT starts_with(${table}.stream, '$')))`;

/** SQL: as `hasDeletedPlace`, and the deletion covers its stream. */
export const isDeleted = (table: string): string => `${hasDeletedPlace(table)} AND ${coversStreamOf(table, 'deleted.stream')}`;
