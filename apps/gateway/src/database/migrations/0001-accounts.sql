CREATE TABLE account (
  id                   text COLLATE "C" PRIMARY KEY,
  email                text NOT NULL,
  username             text NOT NULL,
  -- null: a free account; otherwise the billing period, which makes it a paid one
  billing_period_start timestamptz,
  billing_period_end   timestamptz,
  created_at           timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_key (
  id         text COLLATE "C" PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL REFERENCES account,
  -- SHA-256 of the key: the key itself is shown once and kept nowhere
  hash       bytea NOT NULL UNIQUE,
  -- its first characters, so that people can tell their keys apart
  hint       text NOT NULL,
  name       text,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);
-- "the account's keys"
CREATE INDEX api_key_by_account ON api_key (account_id, id);

-- What sources have used, per account and day (UTC).
CREATE TABLE usage (
  account_id  text COLLATE "C" NOT NULL,
  day         date NOT NULL,
  compute_ms  bigint NOT NULL DEFAULT 0,
  invocations bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day)
);
