import { Migration } from '#database';

export class NoteFailures1797811200003 extends Migration {
  readonly sql = `ALTER TABLE webhook ADD COLUMN last_failed_at timestamptz`;
}
