import { Migration } from '#database';

export class KnowSuspendedAccounts1797897600002 extends Migration {
  readonly sql = `
    CREATE TABLE suspended_account (owner_id text COLLATE "C" PRIMARY KEY);
    INSERT INTO suspended_account SELECT DISTINCT owner_id FROM webhook WHERE suspended`;
}
