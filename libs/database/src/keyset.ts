import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

export interface KeysetPage {
  limit: number;
  /** Only ids below this one, that is, older rows. */
  after?: string;
  /** Only ids above this one, that is, newer rows. Without `after`: the page directly before it. */
  before?: string;
}

/**
 * One page of a collection by id, newest first, and how many rows the collection has. Ids sort by creation, so an id is a position whether its row
 * still exists or not.
 *
 * @param collection its conditions; the entity has an `id`
 * @param withRelations joins what a row refers to, one row each: only for the page, because the count does not need it
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
