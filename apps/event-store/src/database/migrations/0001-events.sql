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
  -- Rows come and go all the time, as many as come. A pass over a large table is dear and clears away all there is: so not too often,
  -- not for the sake of new rows alone, and then at full speed.
  autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1
);
-- Is this emit kept already? The emit id first: it begins with its time where it's ours, so new entries go to the same few pages.
CREATE UNIQUE INDEX event_emitted_once ON event (emit_id, emitter_id, stream);

-- How far each partition of the log is stored, and its clock there: committed with the rows. Who changes next_offset from what he
-- has read holds the partition; another one changes no row and rolls back.
CREATE TABLE event_progress (
  topic       text COLLATE "C" NOT NULL,
  partition   integer NOT NULL,
  next_offset bigint NOT NULL DEFAULT 0,
  last_ms     bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (topic, partition)
) WITH (fillfactor = 10);

-- Whose an emitter is, and whether it still exists.
CREATE TABLE emitter (
  id            text COLLATE "C" PRIMARY KEY,
  owner_id      text COLLATE "C" NOT NULL,
  kind          text NOT NULL,
  active        boolean NOT NULL,
  deleted       boolean NOT NULL,
  version       bigint NOT NULL,
  created_at_ms bigint NOT NULL
);

DO $$
DECLARE
  setting text;
BEGIN
  FOREACH setting IN ARRAY ARRAY[
    -- A process that stands still in the middle of a batch must not hold its partition for ever.
    'idle_in_transaction_session_timeout = ''20s''',
    -- Every statement of this database looks rows up by a key. Statistics can't be trusted to show that: the table turns over
    -- within minutes, and a plan that was made when it was empty would read all of it.
    'enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off', 'plan_cache_mode = force_generic_plan'
  ] LOOP
    EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
  END LOOP;
END $$;
