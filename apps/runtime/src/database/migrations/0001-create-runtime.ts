import { Migration } from '#database';

export class CreateRuntime1795305600004 extends Migration {
  readonly sql = `
    -- What runs: the newest state of each source that exists.
    CREATE TABLE deployment (
      source_id        text COLLATE "C" PRIMARY KEY,
      owner_id         text COLLATE "C" NOT NULL,
      active           boolean NOT NULL,
      version          bigint NOT NULL,
      code_hash        text COLLATE "C" NOT NULL,
      configured_props json NOT NULL,
      -- the encrypted credentials of its connections, by id; null: none
      credentials      jsonb,
      schedules        json NOT NULL,
      endpoint_key     text COLLATE "C" UNIQUE,
      name_slug        text NOT NULL,
      -- consecutive runs that ended their process
      kills_in_row     int NOT NULL DEFAULT 0,
      -- the hooks that the component has: only these are run; null: unknown, so each is tried
      hooks            text[]
    );

    -- The next tick of each timer, claimed by SKIP LOCKED, so that several replicas can share the work.
    CREATE TABLE timer (
      source_id   text COLLATE "C" NOT NULL REFERENCES deployment ON DELETE CASCADE,
      prop        text NOT NULL,
      schedule    json NOT NULL,
      next_run_at timestamptz NOT NULL,
      -- A timer whose run is in progress does not tick: \`asked\` is that run, \`resume_at\` the tick after it, and \`next_run_at\` when the run is given up.
      resume_at   timestamptz,
      asked       text,
      PRIMARY KEY (source_id, prop)
    );
    -- "due timers"
    CREATE INDEX timer_due ON timer (next_run_at);

    -- A source's \`this.db\`: JSON text by key.
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

    -- Runs whose effects are written: a repeat of a run writes none.
    CREATE TABLE run_done (
      run_id      text COLLATE "C" PRIMARY KEY,
      finished_at timestamptz NOT NULL DEFAULT now()
    );
    -- "those old enough to be forgotten"
    CREATE INDEX run_done_age ON run_done (finished_at);

    -- Runs that wait because their account has enough of them in progress. A row is deleted when its run has ended.
    CREATE TABLE queued_run (
      seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      run_id     text COLLATE "C" NOT NULL UNIQUE,
      account_id text COLLATE "C" NOT NULL,
      source_id  text COLLATE "C" NOT NULL,
      hook       boolean NOT NULL,
      request    jsonb NOT NULL
    );
    -- the oldest of each source of an account
    CREATE INDEX queued_run_turn ON queued_run (account_id, source_id, seq);
    -- those of a source that is deleted or deactivated
    CREATE INDEX queued_run_source ON queued_run (source_id);

    -- The replica that executes the queued runs of an account.
    CREATE TABLE queue_lease (
      account_id   text COLLATE "C" PRIMARY KEY,
      replica      text NOT NULL,
      leased_until timestamptz NOT NULL
    );

    -- The last runs of each source that have ended, for people to see. A few more than 100 are kept.
    CREATE TABLE finished_run (
      source_id   text COLLATE "C" NOT NULL,
      position    bigint GENERATED ALWAYS AS IDENTITY,
      run_id      text COLLATE "C" NOT NULL,
      trigger     text NOT NULL,
      method      text NOT NULL,
      status      text NOT NULL,
      started_at  timestamptz NOT NULL,
      duration_ms int NOT NULL,
      emitted     int NOT NULL,
      -- JSON; null: it did not fail
      error       text,
      PRIMARY KEY (source_id, position)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05);
    -- "what became of this run?"
    CREATE INDEX finished_run_id ON finished_run (run_id);

    -- Emits that wait for their delivery_ts: the whole record of the event, ready to be produced.
    CREATE TABLE waiting_emit (
      emit_id   text COLLATE "C" PRIMARY KEY,
      source_id text COLLATE "C" NOT NULL,
      due_at    timestamptz NOT NULL,
      headers   jsonb NOT NULL,
      value     bytea NOT NULL
    );
    -- "due emits"
    CREATE INDEX waiting_emit_due ON waiting_emit (due_at);
    -- "those of a source", when its waiting events are deleted, or the source itself
    CREATE INDEX waiting_emit_source ON waiting_emit (source_id);

    -- What an account's runs have used on a day (UTC); written only where there are quotas.
    CREATE TABLE usage (
      account_id  text COLLATE "C" NOT NULL,
      day         date NOT NULL,
      compute_ms  bigint NOT NULL,
      invocations bigint NOT NULL,
      PRIMARY KEY (account_id, day)
    );
    -- Sources that were notified on a day that their account is over its quota.
    CREATE TABLE quota_notice (
      source_id text COLLATE "C" NOT NULL,
      day       date NOT NULL,
      PRIMARY KEY (source_id, day)
    );`;
}
