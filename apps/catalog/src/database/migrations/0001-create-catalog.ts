import { Migration } from '#database';

export class CreateCatalog1795305600002 extends Migration {
  readonly sql = `
    -- Code and what the runtime read from it: both follow from the hash and never change.
    CREATE TABLE code (
      hash        text COLLATE "C" PRIMARY KEY,
      code        text NOT NULL,
      -- a ComponentDescription; json and not jsonb, because users see the order of the props
      description json NOT NULL,
      created_at  timestamptz NOT NULL DEFAULT now()
    );

    CREATE TABLE component (
      id            text COLLATE "C" PRIMARY KEY,
      -- null: a component of the registry, for every account
      owner_id      text COLLATE "C",
      key           text,
      name          text NOT NULL,
      version       text,
      code_hash     text COLLATE "C" NOT NULL REFERENCES code,
      -- where the code lives, as the user gave it
      component_url text,
      -- the registry's component of its key; an older version stays for the sources that run it
      registered    boolean NOT NULL DEFAULT false,
      created_at    timestamptz NOT NULL DEFAULT now(),
      updated_at    timestamptz NOT NULL DEFAULT now()
    );
    -- "the owner's newest component of this key"
    CREATE INDEX component_by_key ON component (owner_id, key, id) WHERE key IS NOT NULL;
    -- "the registered component of this key": one at a time
    CREATE UNIQUE INDEX component_registered ON component (key) WHERE registered;

    CREATE TABLE source (
      id               text COLLATE "C" PRIMARY KEY,
      owner_id         text COLLATE "C" NOT NULL,
      component_id     text COLLATE "C" NOT NULL REFERENCES component,
      name             text NOT NULL,
      name_slug        text COLLATE "C" NOT NULL,
      -- the user's own id of it
      external_id      text COLLATE "C",
      -- what the user configured, without defaults
      configured_props json NOT NULL,
      -- the encrypted credentials of the connections that it uses, by id; null: none
      credentials      jsonb,
      -- by timer prop; fixed when the source is created, so that a new default in the code changes no running source
      schedules        json NOT NULL,
      -- the secret part of the endpoint's URL; kept when a component without an HTTP interface comes between
      endpoint_key     text COLLATE "C" UNIQUE,
      active           boolean NOT NULL DEFAULT true,
      -- grows with each change: facts carry it
      version          int NOT NULL DEFAULT 1,
      created_at       timestamptz NOT NULL DEFAULT now(),
      updated_at       timestamptz NOT NULL DEFAULT now(),
      UNIQUE (owner_id, name_slug)
    );
    -- "the owner's sources, newest first"
    CREATE INDEX source_by_owner ON source (owner_id, id);
    CREATE UNIQUE INDEX source_external_id ON source (owner_id, external_id) WHERE external_id IS NOT NULL;

    -- Credentials for an app.
    CREATE TABLE connection (
      id          text COLLATE "C" PRIMARY KEY,
      owner_id    text COLLATE "C" NOT NULL,
      app         text NOT NULL,
      name        text NOT NULL,
      -- encrypted JSON
      credentials text NOT NULL,
      -- the source with whose inline credentials it was made; deleted with it
      source_id   text COLLATE "C",
      created_at  timestamptz NOT NULL DEFAULT now()
    );
    -- "the owner's connections, newest first"
    CREATE INDEX connection_by_owner ON connection (owner_id, id);
    CREATE INDEX connection_of_source ON connection (source_id) WHERE source_id IS NOT NULL;

    -- Workflows run elsewhere: the topic \`workflows\` describes them.
    CREATE TABLE workflow (
      id         text COLLATE "C" PRIMARY KEY,
      owner_id   text COLLATE "C" NOT NULL,
      name       text NOT NULL,
      active     boolean NOT NULL,
      -- the row of a removed workflow stays, so that its version keeps growing when the workflow returns
      deleted    boolean NOT NULL DEFAULT false,
      version    int NOT NULL DEFAULT 1,
      created_at timestamptz NOT NULL DEFAULT now()
    );`;
}
