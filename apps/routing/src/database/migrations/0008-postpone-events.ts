import { Migration } from '#database';

export class PostponeEvents1796947200006 extends Migration {
  readonly sql = `
    CREATE TABLE postponed_event (
      ms         bigint NOT NULL,
      seq        bigint NOT NULL,
      owner_id   text COLLATE "C" NOT NULL,
      emitter_id text COLLATE "C" NOT NULL,
      stream     text COLLATE "C" NOT NULL,
      headers    text NOT NULL,
      value      bytea NOT NULL,
      PRIMARY KEY (ms, seq)
    );
    CREATE INDEX postponed_event_of_account ON postponed_event (owner_id, ms, seq);
    CREATE INDEX postponed_event_of_emitter ON postponed_event (emitter_id, ms, seq);`;
}
