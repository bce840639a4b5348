import { Migration } from '#database';

export class NoteDeletedSources1798905600001 extends Migration {
  readonly sql = `
    CREATE TABLE deleted_source (
      id         text COLLATE "C" PRIMARY KEY,
      state      json NOT NULL,
      deleted_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX deleted_source_age ON deleted_source (deleted_at)`;
}
