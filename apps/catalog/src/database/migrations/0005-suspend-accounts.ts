import { Migration } from '#database';

export class SuspendAccounts1796947200002 extends Migration {
  readonly sql = `
    ALTER TABLE source ADD COLUMN suspended boolean NOT NULL DEFAULT false;
    ALTER TABLE workflow ADD COLUMN suspended boolean NOT NULL DEFAULT false;
    -- "the workflows of this account"
    CREATE INDEX workflow_of_owner ON workflow (owner_id);
    -- "does another component have this code?"
    CREATE INDEX component_of_code ON component (code_hash);`;
}
