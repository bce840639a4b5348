import { Migration } from '#database';

export class VersionsGrowWithTime1795996800004 extends Migration {
  readonly sql = `
    ALTER TABLE source
      ALTER COLUMN version TYPE bigint,
      ALTER COLUMN version SET DEFAULT floor(date_part('epoch', clock_timestamp()) * 1000);
    ALTER TABLE workflow
      ALTER COLUMN version TYPE bigint,
      ALTER COLUMN version SET DEFAULT floor(date_part('epoch', clock_timestamp()) * 1000);`;
}
