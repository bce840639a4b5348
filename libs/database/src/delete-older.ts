import type { Database } from './database.js';

const BATCH_ROWS = 10_000;

/**
 * Deletes the rows of a table whose column is before a time, in batches: a day of a busy system has millions, and one statement for all of them would
 * take longer than a statement may. The column needs an index.
 */
export async function deleteOlder(database: Database, table: string, column: string, before: Date, batchRows = BATCH_ROWS): Promise<void> {
  for (let deleted = batchRows; deleted === batchRows;) {
    const { rowCount } = await database.query(
      // the second condition: a row that has got a new time meanwhile stays
      `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${column} < $1 ORDER BY ${column} LIMIT ${batchRows})) AND ${column} < $1`,
      [before],
    );
    deleted = rowCount ?? 0;
  }
}
