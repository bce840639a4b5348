import { Migration } from '#database';

export class SuspendAccounts1796947200001 extends Migration {
  readonly sql = `ALTER TABLE deployment ADD COLUMN suspended boolean NOT NULL DEFAULT false;`;
}
