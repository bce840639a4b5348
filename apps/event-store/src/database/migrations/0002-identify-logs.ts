import { Migration } from '#database';

export class IdentifyLogs1795305600007 extends Migration {
  readonly sql = `
    -- The timestamp of the record below next_offset: it identifies the log, because another log has another record there. null: unknown.
    ALTER TABLE event_progress ADD COLUMN record_ms bigint;`;
}
