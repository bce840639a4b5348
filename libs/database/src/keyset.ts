import type { QueryResultRow } from 'pg';
import type { Session } from './database.js';

/** A list by id, newest first. Ids sort by creation time, so an id is a position whether or not its row still exists. */
export interface KeysetList {
  /** `SELECT … FROM …`, without conditions. */
  select: string;
  /** The conditions that define the collection, with `$1` … for `values`. */
  where: string;
  values: unknown[];
  /** The id's column. */
  id: string;
}

export interface KeysetPage {
  limit: number;
  /** Only ids below this one, that is, older rows. */
  after?: string;
  /** Only ids above this one, that is, newer rows. Without `after`: the page directly before it. */
  before?: string;
}

/** One page, newest first, and the number of rows in the collection. */
export async function readKeysetPage<Row extends QueryResultRow>(
  session: Session,
  { select, where, values, id }: KeysetList,
  { limit, after, before }: KeysetPage,
): Promise<{ rows: Row[]; total: number }> {
  const conditions = [where];
  const parameters = [...values];
  const compare = (operator: '<' | '>', cursor: string) => conditions.push(`${id} ${operator} $${parameters.push(cursor)}`);
  if (after !== undefined) compare('<', after);
  if (before !== undefined) compare('>', before);
  const backwards = before !== undefined && after === undefined;
  const page = `${select} WHERE ${conditions.join(' AND ')} ORDER BY ${id} ${backwards ? 'ASC' : 'DESC'} LIMIT $${parameters.push(limit)}`;
  const from = select.slice(select.search(/\bFROM\b/));
  const [{ rows }, count] = await Promise.all([
    session.query<Row>(page, parameters),
    session.query<{ total: number }>(`SELECT count(*)::int AS total ${from} WHERE ${where}`, values),
  ]);
  return { rows: backwards ? rows.reverse() : rows, total: count.rows[0]?.total ?? 0 };
}
