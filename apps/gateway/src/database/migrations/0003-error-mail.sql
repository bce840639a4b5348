-- Whether the owner is told of errors by mail.
ALTER TABLE account ADD COLUMN error_mail boolean NOT NULL DEFAULT true;

-- The last mail about an error of one code of one emitter, and how many more there were since.
CREATE TABLE error_notice (
  account_id text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  code       text NOT NULL,
  mailed_at  timestamptz NOT NULL,
  since      int NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, subject_id, code)
);

-- Errors that were told of already: a fact may come twice.
CREATE TABLE error_seen (
  id      text COLLATE "C" PRIMARY KEY,
  seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX error_seen_age ON error_seen (seen_at);
