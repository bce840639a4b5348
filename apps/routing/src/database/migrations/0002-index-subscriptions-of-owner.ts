import { Migration } from '#database';

export class IndexSubscriptionsOfOwner1795651200000 extends Migration {
  readonly sql = `
    -- "the next part of an account's subscriptions, newest first"
    CREATE INDEX subscription_of_owner ON subscription (owner_id, id);`;
}
