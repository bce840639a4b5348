/**
 * SQL that runs statements in one round trip, which costs more than a statement that changes little. They change different tables, because none of them
 * sees what the others change, and use the same parameters. PostgreSQL chooses their order: not for statements that must lock in one.
 */
export const together = (...statements: string[]): string =>
  `WITH ${statements.map((statement, index) => `part_${index} AS (${statement})`).join(', ')} SELECT`;
