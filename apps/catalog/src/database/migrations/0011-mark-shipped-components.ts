import { Migration } from '#database';

export class MarkShippedComponents1798732800002 extends Migration {
  readonly sql = `
    -- those of the registry that ship with Sluice have no URL from now on; until now, it was their path in the folder of the installation
    UPDATE component SET component_url = NULL WHERE owner_id IS NULL AND registered AND component_url LIKE '%/components/%'`;
}
