import { Migration } from '#database';

export class KnowSuspendedAccounts1797897600001 extends Migration {
  readonly sql = `
    CREATE TABLE suspended_account (owner_id text COLLATE "C" PRIMARY KEY);
    INSERT INTO suspended_account SELECT DISTINCT owner_id FROM source WHERE suspended`;
}
