import { Migration } from '#database';

export class SuspendAccounts1796947200003 extends Migration {
  readonly sql = `ALTER TABLE account ADD COLUMN suspended_at timestamptz;`;
}
