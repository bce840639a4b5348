import { Migration } from '#database';

export class StoreHeadersOfEmitsUncompressed1798992000004 extends Migration {
  readonly sql = `
    -- the size of an uncompressed value is known without reading it
    ALTER TABLE waiting_emit ALTER COLUMN headers SET STORAGE EXTERNAL;`;
}
