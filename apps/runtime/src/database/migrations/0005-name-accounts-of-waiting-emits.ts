import { Migration } from '#database';

export class NameAccountsOfWaitingEmits1796860800001 extends Migration {
  readonly sql = `
    ALTER TABLE waiting_emit ADD COLUMN account_id text COLLATE "C";
    UPDATE waiting_emit w SET account_id = d.owner_id FROM deployment d WHERE d.source_id = w.source_id;
    -- the oldest of each account
    CREATE INDEX waiting_emit_turn ON waiting_emit (account_id, due_at);`;
}
