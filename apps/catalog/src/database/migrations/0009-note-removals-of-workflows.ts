import { Migration } from '#database';

export class NoteRemovalsOfWorkflows1798473600001 extends Migration {
  readonly sql = 'ALTER TABLE workflow ADD COLUMN removed_at_ms bigint';
}
