import { Migration } from '#database';

export class CreateGateway1795305600003 extends Migration {
  readonly sql = `
    CREATE TABLE account (
      id                   text COLLATE "C" PRIMARY KEY,
      email                text NOT NULL,
      username             text NOT NULL,
      -- null: a free account; otherwise the billing period, which makes it a paid one
      billing_period_start timestamptz,
      billing_period_end   timestamptz,
      -- whether the owner gets mail about errors
      error_mail           boolean NOT NULL DEFAULT true,
      created_at           timestamptz NOT NULL DEFAULT now()
    );

    CREATE TABLE api_key (
      id         text COLLATE "C" PRIMARY KEY,
      account_id text COLLATE "C" NOT NULL REFERENCES account,
      -- SHA-256 of the key: the key itself is shown once and stored nowhere
      hash       bytea NOT NULL UNIQUE,
      -- the first characters of the key, so that people can distinguish their keys
      prefix     text NOT NULL,
      name       text,
      -- read: only GET, and no secrets
      scope      text NOT NULL DEFAULT 'write',
      created_at timestamptz NOT NULL DEFAULT now(),
      -- written a few seconds later, for many requests at once
      last_used_at timestamptz,
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

    -- Runs that the usage includes already: a fact may arrive twice.
    CREATE TABLE run_counted (
      run_id     text COLLATE "C" PRIMARY KEY,
      counted_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX run_counted_age ON run_counted (counted_at);

    -- Responses to POST requests with an Idempotency-Key: a repeat gets the same one.
    CREATE TABLE idempotent_request (
      account_id   text COLLATE "C" NOT NULL,
      key          text COLLATE "C" NOT NULL,
      -- SHA-256 of method, path, query and body: the same key with another payload is a mistake
      fingerprint  bytea NOT NULL,
      -- null while the first request is in progress
      status       int,
      content_type text,
      body         text,
      created_at   timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (account_id, key)
    );
    -- "those old enough to be forgotten"
    CREATE INDEX idempotent_request_age ON idempotent_request (created_at);

    -- The last mail about an error with one code of one emitter, and how many more errors there were since.
    CREATE TABLE error_notice (
      account_id text COLLATE "C" NOT NULL,
      subject_id text COLLATE "C" NOT NULL,
      code       text NOT NULL,
      mailed_at  timestamptz NOT NULL,
      since      int NOT NULL DEFAULT 0,
      PRIMARY KEY (account_id, subject_id, code)
    );

    -- Errors that were counted already: a fact may arrive twice.
    CREATE TABLE error_seen (
      id      text COLLATE "C" PRIMARY KEY,
      seen_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX error_seen_age ON error_seen (seen_at);`;
}
