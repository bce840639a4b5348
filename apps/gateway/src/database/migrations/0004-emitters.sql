-- Whose an emitter is, as the directory keeps it: who may publish in its name.
CREATE TABLE emitter (
  id            text COLLATE "C" PRIMARY KEY,
  owner_id      text COLLATE "C" NOT NULL,
  kind          text NOT NULL,
  active        boolean NOT NULL,
  deleted       boolean NOT NULL,
  version       bigint NOT NULL,
  created_at_ms bigint NOT NULL
);
