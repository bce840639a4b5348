import { Migration } from '#database';

export class IndexReplaysOfOwner1797033600000 extends Migration {
  readonly sql = `
    -- "when was the last turn of this account?"
    CREATE INDEX replay_of_owner ON replay (owner_id, leased_until);`;
}
