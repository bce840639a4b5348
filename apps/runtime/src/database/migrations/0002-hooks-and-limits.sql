-- Runs in a row that ended their process.
ALTER TABLE deployment ADD COLUMN kills_in_row int NOT NULL DEFAULT 0;

-- Emits that wait for their delivery_ts: the whole record of the event as it's to be produced.
CREATE TABLE waiting_emit (
  emit_id   text COLLATE "C" PRIMARY KEY,
  source_id text COLLATE "C" NOT NULL,
  due_at    timestamptz NOT NULL,
  headers   jsonb NOT NULL,
  value     bytea NOT NULL
);
-- "whose time has come"
CREATE INDEX waiting_emit_due ON waiting_emit (due_at);

-- What an account's runs have used on a day (UTC); written only where there are quotas.
CREATE TABLE usage (
  account_id  text COLLATE "C" NOT NULL,
  day         date NOT NULL,
  compute_ms  bigint NOT NULL,
  invocations bigint NOT NULL,
  PRIMARY KEY (account_id, day)
);
-- Sources that were told today that their account is over its quota.
CREATE TABLE quota_notice (
  source_id text COLLATE "C" NOT NULL,
  day       date NOT NULL,
  PRIMARY KEY (source_id, day)
);
