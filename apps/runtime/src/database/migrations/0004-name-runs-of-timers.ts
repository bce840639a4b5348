import { Migration } from '#database';

export class NameRunsOfTimers1796256000001 extends Migration {
  readonly sql = 'ALTER TABLE timer RENAME asked TO run_id';
}
