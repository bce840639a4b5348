import { Migration } from '#database';

/** Earlier versions stored names of up to a megabyte, also of workflows that were removed: a reply with a few of them was too large to be sent. */
export class ShortenNamesOfWorkflows1799164800001 extends Migration {
  readonly sql = `
    UPDATE workflow SET name = CASE WHEN deleted THEN '' ELSE left(name, 1024) END
    WHERE length(name) > 1024 OR (deleted AND name <> '')`;
}
