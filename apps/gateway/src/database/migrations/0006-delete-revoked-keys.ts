import { Migration } from '#database';

export class DeleteRevokedKeys1798560000002 extends Migration {
  readonly sql = `
    -- Keys that the operator has issued keep their rows. That of an older key is unknown.
    ALTER TABLE api_key ADD COLUMN by_operator boolean NOT NULL DEFAULT true;
    CREATE INDEX api_key_valid ON api_key (account_id, id) WHERE revoked_at IS NULL;`;
}
