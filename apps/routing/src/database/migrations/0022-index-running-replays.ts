import { Migration } from '#database';

export class IndexRunningReplays1798819200011 extends Migration {
  readonly sql = `
    -- "the replays of this account that run", and all of them: few, however many have ended
    CREATE INDEX replay_running_of_owner ON replay (owner_id, leased_until) WHERE status = 'running';
    DROP INDEX replay_running;
    -- "those that are too old"
    CREATE INDEX replay_ended ON replay (created_at) WHERE status <> 'running';`;
}
