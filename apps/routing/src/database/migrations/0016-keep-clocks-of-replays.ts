import { Migration } from '#database';

export class KeepClocksOfReplays1797897600000 extends Migration {
  readonly sql = `ALTER TABLE replay ADD COLUMN clocks jsonb NOT NULL DEFAULT '{}'`;
}
