/**
 * SQL that runs several statements in one round trip. All of them see the data as it was before the first one, also after they have waited for a lock, and
 * PostgreSQL chooses their order (at present the last one first). So they change different tables, do not read what another one changes, and lock nothing
 * that other transactions lock in a certain order. All of them use the same parameters.
 */
export const together = (...statements: string[]): string =>
  `WITH ${statements.map((statement, index) => `part_${index} AS (${statement})`).join(', ')} SELECT`;
