import { Migration } from '#database';

export class NameAccountsOfRetriedRuns1796860800002 extends Migration {
  readonly sql = `
    ALTER TABLE retried_run ADD COLUMN account_id text COLLATE "C";
    UPDATE retried_run SET account_id = request->>'owner_id';
    -- the oldest of each account
    CREATE INDEX retried_run_turn ON retried_run (account_id, due_at);`;
}
