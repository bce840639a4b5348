import { Migration } from '#database';

export class HoldQueuedRuns1796947200011 extends Migration {
  readonly sql = `
    ALTER TABLE queued_run ADD COLUMN held_by text, ADD COLUMN held_until timestamptz;
    CREATE INDEX queued_run_held ON queued_run (source_id) WHERE held_by IS NOT NULL;
  `;
}
