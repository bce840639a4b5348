import { Migration } from '#database';

export class CreateEventStore1795305600006 extends Migration {
  readonly sql = `
    -- The last events of each emitter and stream. An event's id is ms || '-' || seq, its place in the log.
    CREATE TABLE event (
      ms         bigint NOT NULL,
      seq        bigint NOT NULL,
      emitter_id text COLLATE "C" NOT NULL,
      stream     text COLLATE "C" NOT NULL,            -- '' is the default one
      emit_id    text COLLATE "C" NOT NULL,            -- unique at emission: a producer's retry has the same
      event      bytea NOT NULL,                       -- the JSON as it was emitted, byte for byte
      truncated  bytea,                                -- only of an event over 1 KB: what is shown without expand=event
      summary    text,                                 -- summary, id and ts as the emitter gave them
      item_id    text,
      item_ts    bigint,
      PRIMARY KEY (emitter_id, stream, ms, seq)
    ) WITH (
      -- Rows come and go all the time, as many as come. A pass over a large table is expensive and removes all dead rows: so not too often,
      -- not because of new rows alone, and then at full speed.
      autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_cost_delay = 0,
      autovacuum_vacuum_insert_threshold = -1
    );
    -- "is this emit stored already?" The emit id comes first: those that the runtime makes begin with the time, so new entries go to the same few pages.
    CREATE UNIQUE INDEX event_emitted_once ON event (emit_id, emitter_id, stream);

    -- How far each partition of the log is stored, and its clock there: committed with the rows. A replica that changes next_offset from
    -- the value it has read holds the partition; another one changes no row and rolls back.
    CREATE TABLE event_progress (
      topic       text COLLATE "C" NOT NULL,
      partition   integer NOT NULL,
      next_offset bigint NOT NULL DEFAULT 0,
      last_ms     bigint NOT NULL DEFAULT 0,
      PRIMARY KEY (topic, partition)
    ) WITH (fillfactor = 10);

    -- Emits that waited for their delivery_ts until their event was deleted from \`$in\`: the runtime looks an emit up before it emits it.
    CREATE TABLE withdrawn_emit (
      emitter_id   text COLLATE "C" NOT NULL,
      emit_id      text COLLATE "C" NOT NULL,
      withdrawn_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (emitter_id, emit_id)
    );
    -- "those old enough to be forgotten"
    CREATE INDEX withdrawn_emit_age ON withdrawn_emit (withdrawn_at);

    -- Ranges of events that users have deleted: the log still has the events, and they must not be delivered again.
    CREATE TABLE deleted_range (
      emitter_id text COLLATE "C" NOT NULL,
      -- the place of the deletion in the log
      ms         bigint NOT NULL,
      seq        bigint NOT NULL,
      -- null: every stream; \`*\`: the default one and all custom ones
      stream     text COLLATE "C",
      -- event ids, inclusive; null: from the first, to the last
      start_id   text,
      end_id     text,
      deleted_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (emitter_id, ms, seq)
    );
    -- "those old enough to be forgotten"
    CREATE INDEX deleted_range_age ON deleted_range (deleted_at);

    DO $$
    DECLARE
      setting text;
    BEGIN
      FOREACH setting IN ARRAY ARRAY[
        -- A process that stops in the middle of a batch must not hold its partition forever.
        'idle_in_transaction_session_timeout = ''20s''',
        -- Every statement of this database looks rows up by a key. Statistics can't be trusted to show that: the table turns over
        -- within minutes, and a plan that was made when it was empty would read all of it.
        'enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off', 'plan_cache_mode = force_generic_plan'
      ] LOOP
        EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
      END LOOP;
    END $$;`;
}
