import { Migration } from '#database';

export class IndexDeploymentsOfOwner1795737600004 extends Migration {
  readonly sql = `
    -- "the sources of an account that may have run for an event"
    CREATE INDEX deployment_of_owner ON deployment (owner_id);`;
}
