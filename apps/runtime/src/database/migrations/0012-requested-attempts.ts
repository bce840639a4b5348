import { Migration } from '#database';

export class RequestedAttempts1796947200013 extends Migration {
  readonly sql = `
    -- null: the attempt has not been requested
    ALTER TABLE retried_run ADD COLUMN requested_at timestamptz;
    UPDATE retried_run SET requested_at = now()
    WHERE due_at > now() AND due_at <= now() + interval '1 hour' AND to_timestamp((request->>'due_at_ms')::float8 / 1000) <= now();
    -- "those whose requests may have been lost"
    CREATE INDEX retried_run_requested ON retried_run (first_run_id) WHERE requested_at IS NOT NULL;`;
}
