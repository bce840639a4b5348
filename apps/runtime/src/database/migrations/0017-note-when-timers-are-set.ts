import { Migration } from '#database';

export class NoteWhenTimersAreSet1798992000006 extends Migration {
  readonly sql = 'ALTER TABLE timer ADD COLUMN set_at timestamptz;';
}
