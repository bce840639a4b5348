import { Migration } from '#database';

export class BundlesOfPackages1795305600012 extends Migration {
  readonly sql = `
    -- the npm packages that were installed for the code, as a module compressed with Zstandard; null: it imports none
    ALTER TABLE code ADD COLUMN bundle bytea;
    -- already compressed
    ALTER TABLE code ALTER COLUMN bundle SET STORAGE EXTERNAL;
  `;
}
