import { Migration } from '#database';

export class NoteTimesOfDelivered1798905600001 extends Migration {
  readonly sql = `
    -- of the earliest and the latest event in the row: "the row that has a delivery of this event", without reading the deliveries of the others;
    -- null in rows that an earlier version has written
    ALTER TABLE delivered ADD COLUMN first_ms bigint, ADD COLUMN last_ms bigint;`;
}
