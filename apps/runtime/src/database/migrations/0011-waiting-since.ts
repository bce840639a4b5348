import { Migration } from '#database';

export class WaitingSince1796947200012 extends Migration {
  readonly sql = `ALTER TABLE waiting_emit ADD COLUMN waits_since timestamptz NOT NULL DEFAULT now();`;
}
