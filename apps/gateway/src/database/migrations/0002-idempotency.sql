-- Answers to POST requests with an Idempotency-Key, so that a repeat gets the same one.
CREATE TABLE idempotent_request (
  account_id  text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  -- SHA-256 of method, path, query and body: the same key with another payload is a mistake
  fingerprint bytea NOT NULL,
  -- null while the first request is under way
  status      int,
  content_type text,
  body        text,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, key)
);
-- "those old enough to be forgotten"
CREATE INDEX idempotent_request_age ON idempotent_request (created_at);

-- Runs that are in the usage already: a fact may come twice.
CREATE TABLE run_counted (
  run_id     text COLLATE "C" PRIMARY KEY,
  counted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX run_counted_age ON run_counted (counted_at);
