import type { QueryResultRow } from 'pg';
import type { Session } from './database.js';

/** The rows of a batch. One in turns can have more. */
export const FAIR_BATCH_ROWS = 500;
/** The bytes of a batch; its last row may exceed them. A batch is in the memory of the process, and the rows of others wait for it. */
const MOST_BYTES = 1024 * 1024;
/** The bytes of an account's turn; its last row may exceed them. */
const TURN_BYTES = 64 * 1024;
/** The accounts that take turns in one batch. */
const MOST_ACCOUNTS = 100;
/** The accounts that are looked at for it: most of them may have rows that are not due. */
const MOST_LOOKS = 1000;

/** A table whose rows wait to be handled in an order, with the account of each in its column `account_id`. All but `name` are SQL. */
export interface WaitingRows<Row> {
  /** Names the prepared statements. */
  name: string;
  table: string;
  /** The columns of the result. */
  columns: string;
  /** The column that identifies a row; one of the columns of the result. */
  key: keyof Row & string;
  /** The column of the order. The table has an index on it, and one on account_id and this column. */
  order: string;
  /**
   * The size of a row. It must not read values, because a batch of a few rows needs the sizes of 500: `octet_length` reads no text or bytea, but decompressing
   * and printing a jsonb value can take 50 ms. `pg_column_size` reads nothing, but it is the size of the compressed value, unless the storage of the column is EXTERNAL.
   */
  bytes: string;
  /** Which rows are in the index on account_id; absent: all. */
  indexed?: string;
  /** Which rows can be handled; absent: all. */
  due?: string;
}

/**
 * Batches of rows that wait. As long as all of them fit into one batch, it has them in their order. Otherwise the accounts take turns:
 *
 *   a batch = the first rows of each of a hundred accounts, then the oldest rows of all
 *
 * The next batch continues with the accounts that follow. So the rows of an account with few of them do not wait for all the rows of another, and the
 * oldest row never waits forever. The rows of one account keep their order.
 *
 * Rows without an account come from an older version. While there are any, all rows keep their order, because an entity may have rows of both kinds.
 */
export class FairBatches<Row extends QueryResultRow> {
  private readonly oldestFirst: string;
  private readonly oldestOfOthers: string;
  private readonly inTurns: string;
  /** The last account of the last batch in turns. */
  private after = '';

  constructor(private readonly waiting: WaitingRows<Row>) {
    this.oldestFirst = oldestFirst(waiting, 'true');
    this.oldestOfOthers = oldestFirst(waiting, OF_OTHERS);
    this.inTurns = inTurns(waiting);
  }

  /**
   * The next batch. Its rows must be deleted, or must not be due any more, before the next call; otherwise it returns them again.
   * @param without accounts whose rows cannot be handled now
   */
  async next(session: Pick<Session, 'query'>, without: string[] = []): Promise<{ rows: Row[]; isFull: boolean }> {
    const { name, key } = this.waiting;
    const { rows: oldest } = await session.query<Row & { row_bytes: number }>(
      without.length === 0
        ? { name: `${name}-oldest`, text: this.oldestFirst, values: [] }
        : { name: `${name}-oldest-of-others`, text: this.oldestOfOthers, values: [without] },
    );
    const isFull = oldest.length === FAIR_BATCH_ROWS || oldest.reduce((sum, { row_bytes }) => sum + row_bytes, 0) >= MOST_BYTES;
    if (!isFull) return { rows: oldest, isFull };
    const first = await this.nextTurns(session, without);
    const keys = new Set<unknown>(first.map((row): unknown => row[key]));
    return { rows: [...first, ...oldest.filter((row) => !keys.has(row[key]))], isFull };
  }

  private async nextTurns(session: Pick<Session, 'query'>, without: string[]): Promise<Row[]> {
    const read = async (): Promise<(Row & { turn_of: string })[]> => {
      const values = [this.after, without];
      return (await session.query<Row & { turn_of: string }>({ name: `${this.waiting.name}-turns`, text: this.inTurns, values })).rows;
    };
    let rows = await read();
    if (rows.length === 0 && this.after !== '') {
      this.after = '';
      rows = await read();
    }
    this.after = rows.at(-1)?.turn_of ?? '';
    // the last account may have no row that is due
    return rows.filter((row) => row[this.waiting.key] !== null);
  }
}

/** The parts of the statements. */
type Sql = Omit<WaitingRows<unknown>, 'name' | 'key'>;

const isDue = ({ indexed = 'true', due = 'true' }: Sql): string => `(${indexed}) AND (${due})`;

/** The bytes of the rows before a row. Rows of the same rank in the order count, too. */
const bytesBefore = (order: string): string =>
  `coalesce(sum(row_bytes) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)`;

/** The first due rows among those that `of` selects, with their sizes, as many as fit into `bytes`, and one more. */
function firstRows(waiting: Sql, { of, rows, bytes }: { of: string; rows: string; bytes: number }): string {
  const { table, columns, order, bytes: size } = waiting;
  return `SELECT * FROM (
            SELECT *, ${bytesBefore('row_order')} AS before FROM (
              SELECT ${columns}, ${order} AS row_order, ${size} AS row_bytes FROM ${table} WHERE ${of} AND ${isDue(waiting)} ORDER BY ${order} LIMIT ${rows}
            ) AS limited
          ) AS summed WHERE before < ${bytes}`;
}

/**
 * SQL: rows of other accounts than those in $1. A statement that reads the oldest such rows steps over those of the others: that is much faster than stepping from
 * account to account, unless there are millions.
 */
export const OF_OTHERS = '(account_id IS NULL OR account_id <> ALL ($1))';

const oldestFirst = (waiting: Sql, of: string): string =>
  `${firstRows(waiting, { of, rows: String(FAIR_BATCH_ROWS), bytes: MOST_BYTES })} ORDER BY row_order`;

/**
 * Steps from account to account, and reads the first row of each, because a million rows of one may precede the first row of another. The last account
 * has a row in any case: there, the next turns begin.
 * @param $1 the account before the first one
 * @param $2 accounts whose rows cannot be handled now
 */
function inTurns(waiting: Sql): string {
  const { table, order, indexed = 'true', due = 'true' } = waiting;
  const first = (after: string): string =>
    `SELECT account_id AS turn_of, (${due}) AND account_id <> ALL ($2) AS is_due FROM ${table} WHERE account_id > ${after} AND (${indexed}) ORDER BY account_id, ${order} LIMIT 1`;
  const rows = `(SELECT ${FAIR_BATCH_ROWS} / greatest(1, max(found)) FROM turn)`;
  return `WITH RECURSIVE turn (turn_of, is_due, looks, found) AS (
            SELECT *, 1, is_due::int FROM (${first('$1')}) AS first
            UNION ALL
            SELECT next.*, looks + 1, found + next.is_due::int FROM turn CROSS JOIN LATERAL (${first('turn.turn_of')}) AS next
            WHERE looks < ${MOST_LOOKS} AND found < ${MOST_ACCOUNTS}
          ), taken AS (
            SELECT turn_of, own.* FROM turn LEFT JOIN LATERAL (
              ${firstRows(waiting, { of: 'is_due AND account_id = turn_of', rows, bytes: TURN_BYTES })}
            ) AS own ON true WHERE is_due OR looks = (SELECT max(looks) FROM turn)
          )
          SELECT * FROM (SELECT *, ${bytesBefore('turn_of, row_order')} AS before_all FROM taken) AS summed
          WHERE before_all < ${MOST_BYTES} AND NOT EXISTS (SELECT FROM ${table} WHERE account_id IS NULL AND ${isDue(waiting)})
          ORDER BY turn_of, row_order`;
}
