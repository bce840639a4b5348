import { Migration } from '#database';

export class EndSubscriptions1798646400001 extends Migration {
  readonly sql = `
    ALTER TABLE subscription ADD COLUMN ended_at timestamptz;
    -- "those of an emitter whose deletion was undone", "those that ended long ago"
    CREATE INDEX subscription_ended ON subscription (emitter_id) WHERE ended_at IS NOT NULL;`;
}
