-- Whose an emitter is, as the directory keeps it.
CREATE TABLE emitter (
  id            text COLLATE "C" PRIMARY KEY,
  owner_id      text COLLATE "C" NOT NULL,
  kind          text NOT NULL,
  active        boolean NOT NULL,
  deleted       boolean NOT NULL,
  version       bigint NOT NULL,
  created_at_ms bigint NOT NULL
);

-- What runs: the newest state of each source that exists.
CREATE TABLE deployment (
  source_id        text COLLATE "C" PRIMARY KEY,
  owner_id         text COLLATE "C" NOT NULL,
  active           boolean NOT NULL,
  version          bigint NOT NULL,
  code_hash        text COLLATE "C" NOT NULL,
  configured_props json NOT NULL,
  schedules        json NOT NULL,
  endpoint_key     text COLLATE "C" UNIQUE,
  name_slug        text NOT NULL
);

-- The next tick of each timer: claimed by SKIP LOCKED, so restarts and several replicas don't matter.
CREATE TABLE timer (
  source_id   text COLLATE "C" NOT NULL REFERENCES deployment ON DELETE CASCADE,
  prop        text NOT NULL,
  schedule    json NOT NULL,
  next_run_at timestamptz NOT NULL,
  PRIMARY KEY (source_id, prop)
);
-- "whose time has come"
CREATE INDEX timer_due ON timer (next_run_at);

-- A source's `this.db`. JSON text by key.
CREATE TABLE source_db (
  source_id text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  value     text NOT NULL,
  PRIMARY KEY (source_id, key)
);

-- What a source remembers of the ids that it has emitted; see dedupe.ts.
CREATE TABLE source_dedupe (
  source_id text COLLATE "C" PRIMARY KEY,
  state     json NOT NULL
);

-- Runs whose effects are written: a run that is asked for again has none.
CREATE TABLE run_done (
  run_id      text COLLATE "C" PRIMARY KEY,
  finished_at timestamptz NOT NULL DEFAULT now()
);
-- "those old enough to be forgotten"
CREATE INDEX run_done_age ON run_done (finished_at);

CREATE TABLE outbox (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic   text NOT NULL,
  key     text NOT NULL,
  headers jsonb NOT NULL,
  value   bytea
);
