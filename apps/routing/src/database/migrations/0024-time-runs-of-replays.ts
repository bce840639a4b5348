import { Migration } from '#database';

export class TimeRunsOfReplays1799078400041 extends Migration {
  readonly sql = 'ALTER TABLE replay ADD COLUMN parked_at timestamptz';
}
