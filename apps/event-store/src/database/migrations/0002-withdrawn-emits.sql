-- Emits that waited for their delivery_ts until their event was deleted from `$in`: the runtime asks before it lets an emit go.
CREATE TABLE withdrawn_emit (
  emitter_id   text COLLATE "C" NOT NULL,
  emit_id      text COLLATE "C" NOT NULL,
  withdrawn_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (emitter_id, emit_id)
);
-- "those old enough to be forgotten"
CREATE INDEX withdrawn_emit_age ON withdrawn_emit (withdrawn_at);
