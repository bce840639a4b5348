import { Migration } from '#database';

export class KeepTimesOfSchedules1799078400043 extends Migration {
  readonly sql = 'ALTER TABLE parked_delivery ADD COLUMN scheduled_at timestamptz';
}
