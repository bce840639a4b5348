import { Migration } from '#database';

export class IndexWithdrawals1798243200003 extends Migration {
  readonly sql = `
    -- The milliseconds of which a deletion covers all events that precede it; empty if it is of one event. \`ms\` is the time of the deletion.
    CREATE FUNCTION covered_ms(start_id text, end_id text, ms bigint) RETURNS int8range LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN int8range(
        split_part(start_id, '-', 1)::bigint + (split_part(start_id, '-', 2) <> '0')::int,
        greatest(
          split_part(start_id, '-', 1)::bigint + (split_part(start_id, '-', 2) <> '0')::int,
          least(split_part(end_id, '-', 1)::bigint, ms)
        )
      );
    -- "is a deletion from \`$in\` among those of the emitter that covers this time?" However many deletions there are. GiST has no operators for text
    -- without an extension, so the emitter is a range with the hash of its id.
    CREATE INDEX deleted_range_withdrawals ON deleted_range USING gist (
      int8range(hashtext(emitter_id), hashtext(emitter_id), '[]'), covered_ms(start_id, end_id, ms)
    ) WHERE (stream IS NULL OR stream = '$in') AND NOT isempty(covered_ms(start_id, end_id, ms));`;
}
