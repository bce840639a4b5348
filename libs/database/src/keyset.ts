import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

export interface KeysetPage {
  limit: number;
  /** Only ids below this one, that is, older rows. */
  after?: string;
  /** Only ids above this one, that is, newer rows. Without `after`: the page directly before it. */
  before?: string;
}

/** The part of a page to read. */
export interface PagePart {
  /** Cuts the page to the rows that have at most this many bytes together, but at least one. */
  maxBytes?: number;
  /** Does not count the collection; its number of rows is returned as 0. */
  withoutTotal?: boolean;
}

interface PageOptions<Row extends ObjectLiteral> extends PagePart {
  /** Joins relations of one row each; applied to the page only, because the count does not need them. */
  join?: (query: SelectQueryBuilder<Row>) => SelectQueryBuilder<Row>;
  /** SQL: the bytes of a row, for `maxBytes`. */
  size: string;
}

/**
 * One page of a collection by id, newest first, and the number of rows in the collection. Ids sort by creation time, so an id is a position whether or
 * not its row still exists.
 *
 * @param collection a query with the conditions of the collection; the entity has an `id`
 * @returns cut: whether the page has more rows than `maxBytes` allows
 */
export async function readKeysetPage<Row extends ObjectLiteral>(
  collection: SelectQueryBuilder<Row>,
  { limit, after, before }: KeysetPage,
  { join = (query) => query, size, maxBytes, withoutTotal = false }: PageOptions<Row> = { size: '0' },
): Promise<{ rows: Row[]; total: number; cut: boolean }> {
  const id = `${collection.alias}.id`;
  const backwards = before !== undefined && after === undefined;
  const page = collection
    .clone()
    .orderBy(id, backwards ? 'ASC' : 'DESC')
    .limit(limit);
  if (after !== undefined) page.andWhere(`${id} < :after`, { after });
  if (before !== undefined) page.andWhere(`${id} > :before`, { before });
  for (;;) {
    const fitting = maxBytes === undefined ? limit : await countFitting(page, { size, maxBytes }, limit);
    const [rows, total] = await Promise.all([join(page.clone()).limit(fitting).getMany(), withoutTotal ? 0 : collection.getCount()]);
    // a part without rows has no cursor to continue from: those that fit were deleted meanwhile
    if (rows.length > 0 || fitting === limit) return { rows: backwards ? rows.reverse() : rows, total, cut: fitting < limit };
  }
}

/** How many rows of the page fit, at least one; `limit` if all do. */
async function countFitting<Row extends ObjectLiteral>(
  page: SelectQueryBuilder<Row>,
  { size, maxBytes }: { size: string; maxBytes: number },
  limit: number,
): Promise<number> {
  const sizes = await page.clone().select(`(${size})::int`, 'bytes').getRawMany<{ bytes: number }>();
  let sum = 0;
  const first = sizes.findIndex(({ bytes }, n) => (sum += bytes) > maxBytes && n > 0);
  return first < 0 ? limit : first;
}
