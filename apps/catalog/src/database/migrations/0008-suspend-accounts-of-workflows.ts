import { Migration } from '#database';

/** Accounts without sources, which the migration before did not see. */
export class SuspendAccountsOfWorkflows1797897600003 extends Migration {
  readonly sql = `
    INSERT INTO suspended_account SELECT DISTINCT owner_id FROM workflow WHERE suspended AND NOT deleted ON CONFLICT DO NOTHING`;
}
