import type { ColumnOptions, Repository } from 'typeorm';

/** Like `NOW_MS` of the database library, but written as PostgreSQL shows it: the default is compared with that of the migrated schema. */
const NOW_MS = "floor((date_part('epoch', clock_timestamp()) * (1000)))";

/**
 * The version of an emitter's state, at least the time in ms. It increases with each change, also if the database was restored from a backup: the
 * services that know later states than the backup accept the changes that follow.
 */
export const VERSION: ColumnOptions & { type: 'bigint' } = { type: 'bigint', default: () => NOW_MS };

/** For `UPDATE`, also with `ON CONFLICT`, of an emitter's row under the given name. */
export const nextVersion = (table: string) => `greatest(${table}.version + 1, ${NOW_MS})`;

/** `UPDATE` that makes rows newer than the versions $2 of the emitters $1, if they are older. */
export const overrule = (table: string) =>
  `UPDATE ${table} SET version = known.version + 1 FROM unnest($1::text[], $2::bigint[]) AS known (id, version)
   WHERE ${table}.id = known.id AND ${table}.version < known.version`;

/** The versions of the rows with these ids, by id. */
export async function versionsOf<T extends { id: string; version: number }>(
  table: Repository<T>,
  ids: string[],
): Promise<Map<string, number>> {
  const rows = await table.createQueryBuilder('row').select(['row.id', 'row.version']).where('row.id = ANY(:ids)', { ids }).getMany();
  return new Map(rows.map(({ id, version }) => [id, version]));
}
