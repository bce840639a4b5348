import { Migration } from '#database';

export class IndexComponentsOfOwner1798732800001 extends Migration {
  readonly sql = `
    -- "does a source run this component?", for each one that is deleted with its account
    CREATE INDEX source_of_component ON source (component_id);
    -- "the components of this account", also those without a key
    CREATE INDEX component_by_owner ON component (owner_id, id);`;
}
