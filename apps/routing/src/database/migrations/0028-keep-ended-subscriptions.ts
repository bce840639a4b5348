import { Migration } from '#database';

/** A separate table: a replica of the previous version would list and match ended rows of `subscription`. */
export class KeepEndedSubscriptions1799251200002 extends Migration {
  readonly sql = `
    CREATE TABLE ended_subscription (
      owner_id text COLLATE "C" NOT NULL,
      emitter_id text COLLATE "C" NOT NULL,
      stream text COLLATE "C" NOT NULL,
      listener_id text COLLATE "C" NOT NULL,
      ended_at_ms bigint NOT NULL,
      PRIMARY KEY (owner_id, emitter_id, stream, listener_id)
    );
    CREATE INDEX ended_subscription_age ON ended_subscription (ended_at_ms);
    CREATE INDEX ended_subscription_of_listener ON ended_subscription (listener_id);`;
}
