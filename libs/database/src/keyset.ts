import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

export interface KeysetPage {
  limit: number;
  /** Only ids below this one, that is, older rows. */
  after?: string;
  /** Only ids above this one, that is, newer rows. Without `after`: the page directly before it. */
  before?: string;
}

/**
 * One page of a collection by id, newest first, and the number of rows in the collection. Ids sort by creation time, so an id is a position whether or
 * not its row still exists.
 *
 * @param collection a query with the conditions of the collection; the entity has an `id`
 * @param withRelations joins relations of one row each; applied to the page only, because the count does not need them
 */
export async function readKeysetPage<Row extends ObjectLiteral>(
  collection: SelectQueryBuilder<Row>,
  { limit, after, before }: KeysetPage,
  withRelations: (query: SelectQueryBuilder<Row>) => SelectQueryBuilder<Row> = (query) => query,
): Promise<{ rows: Row[]; total: number }> {
  const id = `${collection.alias}.id`;
  const backwards = before !== undefined && after === undefined;
  const page = withRelations(collection.clone())
    .orderBy(id, backwards ? 'ASC' : 'DESC')
    .limit(limit);
  if (after !== undefined) page.andWhere(`${id} < :after`, { after });
  if (before !== undefined) page.andWhere(`${id} > :before`, { before });
  const [rows, total] = await Promise.all([page.getMany(), collection.getCount()]);
  return { rows: backwards ? rows.reverse() : rows, total };
}
