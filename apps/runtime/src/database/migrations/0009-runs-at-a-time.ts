import { Migration } from '#database';

export class RunsAtATime1796947200010 extends Migration {
  readonly sql = `ALTER TABLE deployment ADD COLUMN runs_at_a_time integer;`;
}
