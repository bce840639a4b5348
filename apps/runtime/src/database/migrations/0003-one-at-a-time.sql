-- A timer whose run is under way does not tick: `asked` is that run, `resume_at` the tick after it, `next_run_at` when the run is given up.
ALTER TABLE timer ADD COLUMN resume_at timestamptz, ADD COLUMN asked text;

-- "those of a source": a deletion of its waiting events, or its own
CREATE INDEX waiting_emit_source ON waiting_emit (source_id);
