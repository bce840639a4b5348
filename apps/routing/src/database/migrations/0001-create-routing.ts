import { Migration } from '#database';

export class CreateRouting1795305600005 extends Migration {
  readonly sql = `
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
      -- of the last rotation: a repeated request rotates once
      rotation_id text,
      -- grows with each change: replicas that hold the webhook in memory read it again
      version     bigint NOT NULL DEFAULT 1,
      created_at  timestamptz NOT NULL DEFAULT now(),
      updated_at  timestamptz NOT NULL DEFAULT now(),
      -- deliveries per second; null: no limit
      rate_limit  integer,
      -- the user's own id of it
      external_id text COLLATE "C",
      -- what arrives is parked and delivered from there, in order; see README
      spilled     boolean NOT NULL DEFAULT false,
      -- until then what arrives waits, because the backlog is about to be empty
      closing_until   timestamptz,
      -- the first failure since the last success
      failing_since   timestamptz,
      -- when $errors last reported a delivery that was given up
      failure_told_at timestamptz
    );
    -- "the owner's webhooks, newest first"
    CREATE INDEX webhook_of_owner ON webhook (owner_id, id);
    CREATE UNIQUE INDEX webhook_external_id ON webhook (owner_id, external_id) WHERE external_id IS NOT NULL;

    CREATE TABLE subscription (
      id          text COLLATE "C" PRIMARY KEY,
      owner_id    text COLLATE "C" NOT NULL,
      -- a source or workflow, \`dc_*\`, \`p_*\`, or the owner
      emitter_id  text COLLATE "C" NOT NULL,
      -- as it was sent; \`stream\` is what it means
      event_name  text COLLATE "C" NOT NULL,
      stream      text COLLATE "C" NOT NULL,
      listener_id text COLLATE "C" NOT NULL,
      UNIQUE (owner_id, emitter_id, event_name, listener_id)
    );
    -- "the listeners of this", for each event: an index-only scan
    CREATE INDEX subscription_match ON subscription (owner_id, emitter_id, stream) INCLUDE (listener_id);
    -- "what is deleted with this listener, or with this emitter"
    CREATE INDEX subscription_of_listener ON subscription (listener_id);
    CREATE INDEX subscription_of_emitter ON subscription (emitter_id);

    CREATE TABLE auto_subscription (
      id            text COLLATE "C" PRIMARY KEY,
      owner_id      text COLLATE "C" NOT NULL,
      event_name    text COLLATE "C" NOT NULL,
      listener_id   text COLLATE "C" NOT NULL,
      -- covers emitters created from then on
      created_at_ms bigint NOT NULL,
      UNIQUE (owner_id, event_name, listener_id)
    );
    CREATE INDEX auto_subscription_of_listener ON auto_subscription (listener_id);

    -- What could not be delivered at once, with everything needed to deliver it later.
    CREATE TABLE parked_delivery (
      webhook_id text COLLATE "C" NOT NULL,
      -- the event's id: its place in the log
      ms         bigint NOT NULL,
      seq        bigint NOT NULL,
      emitter_id text COLLATE "C" NOT NULL,
      stream     text COLLATE "C" NOT NULL,
      emit_id    text COLLATE "C" NOT NULL,
      -- when it happened, where the emitter says so
      time       text,
      -- what its producer states about it, as JSON: CloudEvents attributes and trace context; null: nothing
      context    text,
      body       bytea NOT NULL,
      -- not attempted yet: to be attempted in order
      fresh      boolean NOT NULL,
      -- the attempts so far, as the API shows them: the newest
      attempts   jsonb NOT NULL,
      -- how far it is in the retry schedule
      tries      integer NOT NULL,
      -- null: given up
      due_at     timestamptz,
      -- its first attempt takes long; after this time no replica makes it any more
      in_flight_until timestamptz,
      parked_at  timestamptz NOT NULL DEFAULT now(),
      failed_at  timestamptz,
      PRIMARY KEY (webhook_id, ms, seq)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
    -- "what comes next, in order?", "what is due again?", "is an attempt under way?" of a webhook
    CREATE INDEX parked_delivery_fresh ON parked_delivery (webhook_id, ms, seq) WHERE fresh AND due_at IS NOT NULL;
    CREATE INDEX parked_delivery_due ON parked_delivery (webhook_id, due_at) WHERE NOT fresh AND due_at IS NOT NULL;
    CREATE INDEX parked_delivery_in_flight ON parked_delivery (webhook_id) WHERE in_flight_until IS NOT NULL;
    -- "what has waited too long?", "what has been kept long enough?" of all
    CREATE INDEX parked_delivery_age ON parked_delivery (parked_at) WHERE due_at IS NOT NULL;
    CREATE INDEX parked_delivery_failed ON parked_delivery (failed_at) WHERE due_at IS NULL;

    -- A row per webhook that has something parked, or is spilled: the due index is over webhooks, so a million deliveries
    -- that wait for one dead endpoint cost the others nothing.
    CREATE TABLE backlog (
      webhook_id    text COLLATE "C" PRIMARY KEY,
      next_due      timestamptz NOT NULL,
      -- null: its breaker is closed
      failed_probes integer,
      -- the replica that works on it, and until when it alone does
      lease_id      text COLLATE "C",
      leased_until  timestamptz NOT NULL DEFAULT '-infinity'
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
    CREATE INDEX backlog_due ON backlog (next_due);

    -- The newest deliveries that succeeded, a row for all of a webhook in a second or so: a row for each would cost more
    -- than the rest of a delivery.
    CREATE TABLE delivered (
      webhook_id text COLLATE "C" NOT NULL,
      id         bigint GENERATED ALWAYS AS IDENTITY,
      -- how many, and what: a JSON array of them
      count      integer NOT NULL,
      deliveries bytea NOT NULL,
      PRIMARY KEY (webhook_id, id)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

    -- Events of the log that are delivered once more to one listener.
    CREATE TABLE replay (
      id           text COLLATE "C" PRIMARY KEY,
      owner_id     text COLLATE "C" NOT NULL,
      emitter_id   text COLLATE "C" NOT NULL,
      stream       text COLLATE "C" NOT NULL,
      listener_id  text COLLATE "C" NOT NULL,
      -- event ids, both inclusive
      from_id      text NOT NULL,
      to_id        text NOT NULL,
      status       text NOT NULL DEFAULT 'running',
      events       integer NOT NULL,
      delivered    integer NOT NULL DEFAULT 0,
      failed       integer NOT NULL DEFAULT 0,
      -- the next offset of each partition
      offsets      jsonb NOT NULL DEFAULT '{}',
      -- deliveries of a webhook that are parked and not counted yet, by the ids of their events
      parked       jsonb NOT NULL DEFAULT '[]',
      -- until then one replica works on it
      leased_until timestamptz NOT NULL DEFAULT '-infinity',
      created_at   timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX replay_running ON replay (leased_until) WHERE status = 'running';

    DO $$
    DECLARE
      setting text;
    BEGIN
      FOREACH setting IN ARRAY ARRAY[
        -- A process that stops in the middle of a transaction must not hold a webhook forever.
        'idle_in_transaction_session_timeout = ''20s''',
        -- Every statement of this database looks rows up by a key. Statistics can't be trusted to show that: a backlog grows by a
        -- million rows while a plan that was made when it was empty would read all of it.
        'enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off', 'plan_cache_mode = force_generic_plan'
      ] LOOP
        EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
      END LOOP;
    END $$;`;
}
