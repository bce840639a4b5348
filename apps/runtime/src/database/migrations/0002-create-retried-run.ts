import { Migration } from '#database';

export class CreateRetriedRun1795564800000 extends Migration {
  readonly sql = `
    -- Runs for events that failed and will be repeated, by their first attempts. A row is deleted when an attempt succeeds, or the last one has failed.
    CREATE TABLE retried_run (
      first_run_id text COLLATE "C" PRIMARY KEY,
      source_id    text COLLATE "C" NOT NULL,
      -- when the next attempt is requested; while it is in progress: when it is requested again
      due_at       timestamptz NOT NULL,
      -- the next attempt
      request      jsonb NOT NULL
    );
    -- "due attempts"
    CREATE INDEX retried_run_due ON retried_run (due_at);
    -- those of a source that is deleted or deactivated
    CREATE INDEX retried_run_source ON retried_run (source_id);`;
}
