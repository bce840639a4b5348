-- Runs that wait because their account has enough of them under way. A row goes when its run has ended.
CREATE TABLE queued_run (
  seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id     text NOT NULL UNIQUE,
  account_id text NOT NULL,
  source_id  text NOT NULL,
  hook       boolean NOT NULL,
  request    jsonb NOT NULL
);
-- the oldest of each source of an account
CREATE INDEX queued_run_turn ON queued_run (account_id, source_id, seq);
-- those of a source that is deleted or deactivated
CREATE INDEX queued_run_source ON queued_run (source_id);

-- The replica that executes the queued runs of an account.
CREATE TABLE queue_lease (
  account_id   text PRIMARY KEY,
  replica      text NOT NULL,
  leased_until timestamptz NOT NULL
);
