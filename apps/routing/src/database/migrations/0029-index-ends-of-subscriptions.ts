import { Migration } from '#database';

export class IndexEndsOfSubscriptions1799251200003 extends Migration {
  readonly sql = `
    -- "those to a stream of an emitter that ended after an event": a listener may have had 100,000 others, which the primary key cannot leave out.
    -- Where it exists, migration 0028 had created it
    CREATE INDEX IF NOT EXISTS ended_subscription_end ON ended_subscription (owner_id, emitter_id, stream, ended_at_ms)`;
}
