/**
 * SQL: deletes the rows that runs have written after their source was deleted. It steps from source to source by the index of `source_id`, because there are
 * hardly any such rows, and the table may have gigabytes. One replica at a time.
 *
 * @param condition SQL on `source.id`: such deleted sources only
 */
export const deletionOfDeletedSources = (table: string, condition = 'true'): string =>
  `WITH RECURSIVE source (id) AS (
     (SELECT source_id FROM ${table} WHERE (SELECT pg_try_advisory_xact_lock(hashtext('sluice.deleted.${table}'))) ORDER BY source_id LIMIT 1)
     UNION ALL
     SELECT (SELECT source_id FROM ${table} WHERE source_id > source.id ORDER BY source_id LIMIT 1) FROM source WHERE source.id IS NOT NULL
   )
   DELETE FROM ${table} WHERE source_id = ANY (ARRAY(
     SELECT id FROM source WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM deployment WHERE source_id = source.id) AND ${condition}))`;
