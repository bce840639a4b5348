import { Migration } from '#database';

export class SuspendAccounts1796947200000 extends Migration {
  readonly sql = `ALTER TABLE webhook ADD COLUMN suspended boolean NOT NULL DEFAULT false;`;
}
