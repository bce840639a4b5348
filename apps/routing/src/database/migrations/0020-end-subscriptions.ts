import { Migration } from '#database';

export class EndSubscriptions1798646400001 extends Migration {
  readonly sql = `
    ALTER TABLE subscription ADD COLUMN ended_at timestamptz;
    -- "those that ended long ago"
    CREATE INDEX subscription_ended ON subscription (ended_at) WHERE ended_at IS NOT NULL;`;
}
