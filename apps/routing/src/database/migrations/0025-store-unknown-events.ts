import { Migration } from '#database';

export class StoreUnknownEvents1799078400042 extends Migration {
  readonly sql = `
    CREATE TABLE unknown_event (
      ms         bigint NOT NULL,
      seq        bigint NOT NULL,
      emitter_id text COLLATE "C" NOT NULL,
      stream     text COLLATE "C" NOT NULL,
      headers    text NOT NULL,
      value      bytea NOT NULL,
      PRIMARY KEY (ms, seq)
    );
    CREATE INDEX unknown_event_of_emitter ON unknown_event (emitter_id, ms, seq);`;
}
