import { Migration } from '#database';

export class NameAccountsOfBacklogs1797811200000 extends Migration {
  readonly sql = `
    -- for once, whole tables are read
    SET LOCAL enable_seqscan = on;
    -- empty in a row that an earlier version has written, until it is claimed
    ALTER TABLE backlog ADD COLUMN owner_id text COLLATE "C" NOT NULL DEFAULT '';
    UPDATE backlog SET owner_id = webhook.owner_id FROM webhook WHERE webhook.id = backlog.webhook_id;
    -- "the next backlogs of an account", for accounts that take turns
    CREATE INDEX backlog_of_owner ON backlog (owner_id, next_due);`;
}
