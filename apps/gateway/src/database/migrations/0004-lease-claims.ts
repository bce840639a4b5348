import { Migration } from '#database';

export class LeaseClaims1796947200005 extends Migration {
  readonly sql = `
    ALTER TABLE idempotent_request
      -- the gateway renews it while the first request is in progress; gateways of the version before do not set it
      ADD COLUMN leased_until timestamptz NOT NULL DEFAULT now() + interval '3 minutes';`;
}
