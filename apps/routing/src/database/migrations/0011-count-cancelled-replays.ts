import { Migration } from '#database';

export class CountCancelledReplays1797724800000 extends Migration {
  readonly sql = `
    ALTER TABLE replay ADD COLUMN cancelled_at timestamptz`;
}
