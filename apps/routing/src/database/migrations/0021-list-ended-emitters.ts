import { Migration } from '#database';

/** One row for a deleted emitter, instead of a change of each of its subscriptions. */
export class ListEndedEmitters1798819200001 extends Migration {
  readonly sql = `
    CREATE TABLE ended_emitter (
      emitter_id text COLLATE "C" PRIMARY KEY,
      owner_id text COLLATE "C" NOT NULL,
      subscriptions int NOT NULL,
      ended_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX ended_emitter_age ON ended_emitter (ended_at);
    INSERT INTO ended_emitter SELECT emitter_id, min(owner_id), count(*), min(ended_at) FROM subscription WHERE ended_at IS NOT NULL GROUP BY 1;
    ALTER TABLE subscription DROP COLUMN ended_at;`;
}
