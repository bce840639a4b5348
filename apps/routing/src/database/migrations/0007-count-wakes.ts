import { Migration } from '#database';

export class CountWakes1796947200004 extends Migration {
  readonly sql = `ALTER TABLE backlog ADD COLUMN wakes integer NOT NULL DEFAULT 0;`;
}
