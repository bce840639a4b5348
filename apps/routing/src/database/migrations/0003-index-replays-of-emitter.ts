import { Migration } from '#database';

export class IndexReplaysOfEmitter1795737600005 extends Migration {
  readonly sql = `
    -- "the replays that an event may have been part of, newest first"
    CREATE INDEX replay_of_emitter ON replay (emitter_id, id);`;
}
