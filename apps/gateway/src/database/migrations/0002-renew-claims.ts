import { Migration } from '#database';

export class RenewClaims1795910400002 extends Migration {
  readonly sql = `
    ALTER TABLE idempotent_request
      -- the first request with the key failed, and another may use the key
      ADD COLUMN free boolean NOT NULL DEFAULT false,
      -- when the key was first claimed: a failure does not change it
      ADD COLUMN first_at timestamptz NOT NULL DEFAULT now();`;
}
