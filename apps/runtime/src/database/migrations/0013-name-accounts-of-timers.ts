import { Migration } from '#database';

export class NameAccountsOfTimers1798732800020 extends Migration {
  readonly sql = `
    -- null in a row that an earlier version has written, until its next tick
    ALTER TABLE timer ADD COLUMN account_id text COLLATE "C";
    UPDATE timer t SET account_id = d.owner_id FROM deployment d WHERE d.source_id = t.source_id;
    -- "the next timers of an account", for accounts that take turns
    CREATE INDEX timer_turn ON timer (account_id, next_run_at);`;
}
