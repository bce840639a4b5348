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

CREATE TABLE webhook (
  id          text COLLATE "C" PRIMARY KEY,
  owner_id    text COLLATE "C" NOT NULL,
  name        text,
  description text,
  url         text NOT NULL,
  active      boolean NOT NULL DEFAULT true,
  secret      text NOT NULL,
  -- signs beside the secret until it expires
  previous_secret            text,
  previous_secret_expires_at timestamptz,
  -- of the last rotation: asked for twice, it's done once
  rotation_id text,
  -- grows with each change: who keeps the webhook in memory sees by it that it has to read it again
  version     bigint NOT NULL DEFAULT 1,
  created_at  timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now()
);
-- "the owner's webhooks, newest first"
CREATE INDEX webhook_of_owner ON webhook (owner_id, id);

CREATE TABLE subscription (
  id          text COLLATE "C" PRIMARY KEY,
  owner_id    text COLLATE "C" NOT NULL,
  -- a source or workflow, `dc_*`, `p_*`, or the owner
  emitter_id  text COLLATE "C" NOT NULL,
  -- as it was sent; `stream` is what it means
  event_name  text COLLATE "C" NOT NULL,
  stream      text COLLATE "C" NOT NULL,
  listener_id text COLLATE "C" NOT NULL,
  UNIQUE (owner_id, emitter_id, event_name, listener_id)
);
-- "who listens to this?", for each event: answered from the index alone
CREATE INDEX subscription_match ON subscription (owner_id, emitter_id, stream) INCLUDE (listener_id);
-- "what goes with this listener, or with this emitter?"
CREATE INDEX subscription_of_listener ON subscription (listener_id);
CREATE INDEX subscription_of_emitter ON subscription (emitter_id);

CREATE TABLE auto_subscription (
  id            text COLLATE "C" PRIMARY KEY,
  owner_id      text COLLATE "C" NOT NULL,
  event_name    text COLLATE "C" NOT NULL,
  listener_id   text COLLATE "C" NOT NULL,
  -- emitters created from then on are covered
  created_at_ms bigint NOT NULL,
  UNIQUE (owner_id, event_name, listener_id)
);
CREATE INDEX auto_subscription_of_listener ON auto_subscription (listener_id);
