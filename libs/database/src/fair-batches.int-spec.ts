import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { freshDatabase, type FreshDatabase } from '#testing';
import { FairBatches } from './fair-batches.js';
import { schemaOf } from './schema.js';

const KIB = 1024;

interface Row {
  id: number;
  size: number;
}

let fresh: FreshDatabase;
let batches: FairBatches<Row>;
beforeAll(async () => {
  fresh = await freshDatabase(schemaOf('batches', { entities: [], migrations: [] }));
  await fresh.database.query(
    'CREATE TABLE item (id int PRIMARY KEY, account_id text COLLATE "C", size int NOT NULL, due boolean NOT NULL)',
  );
  await fresh.database.query('CREATE INDEX item_turn ON item (account_id, id)');
});
afterAll(() => fresh?.drop());
beforeEach(async () => {
  await fresh.database.query('TRUNCATE item');
  batches = new FairBatches({
    ...{ name: 'item', table: 'item', columns: 'id, size', key: 'id', order: 'id', bytes: 'size', due: 'due' },
  });
});

/** Adds rows behind those that wait. Returns their ids. */
async function add(account: string | null, count: number, { size = 1, due = true } = {}): Promise<number[]> {
  const { rows } = await fresh.database.query<{ id: number }>(
    `INSERT INTO item (id, account_id, size, due) SELECT n + coalesce((SELECT max(id) FROM item), 0), $1, $3, $4 FROM generate_series(1, $2) AS n
     RETURNING id`,
    [account, count, size, due],
  );
  return rows.map(({ id }) => id);
}

/** The ids of the next batch, which are deleted. */
async function next(): Promise<number[]> {
  const { rows } = await batches.next(fresh.database);
  const ids = rows.map(({ id }) => id);
  await fresh.database.query('DELETE FROM item WHERE id = ANY($1)', [ids]);
  return ids;
}

describe('a batch', () => {
  it('has all rows in their order, whosever they are, if they fit into it', async () => {
    const ids = [...(await add('b', 200)), ...(await add('a', 200)), ...(await add(null, 50)), ...(await add('b', 1, { size: 500 * KIB }))];
    await add('a', 1, { due: false });
    expect((await batches.next(fresh.database)).isFull).toBe(false);
    expect(await next()).toEqual(ids);
    expect(await next()).toEqual([]);
  });

  it('begins with the first rows of each account, although 10 000 rows of another one are before them', async () => {
    const [first = 0] = await add('busy', 10_000);
    const small = [...(await add('a', 2)), ...(await add('z', 1))];
    const ids = await next();
    expect(ids).toEqual(expect.arrayContaining([...small, first]));
    expect(ids.length).toBeLessThan(1000);
    const rest: number[] = [];
    for (let batch = await next(); batch.length > 0; batch = await next()) rest.push(...batch);
    const ofBusy = [...ids, ...rest].filter((id) => !small.includes(id));
    expect(ofBusy).toEqual(Array.from({ length: 10_000 }, (_, n) => first + n));
  });

  it('has about two megabytes at most, and one row of an account that has only large ones', async () => {
    const [large = 0] = await add('busy', 100, { size: 900 * KIB });
    const [small = 0] = await add('z', 1);
    expect(await next()).toEqual([large, small, large + 1]);
    expect(await next()).toEqual([large + 2, large + 3]);
  });

  it('continues with the accounts that follow those of the batch before', async () => {
    for (let n = 0; n < 250; n++) await add(`u${String(n).padStart(3, '0')}`, 100);
    const seen = new Set<number>();
    for (let n = 0; n < 3; n++) for (const id of await next()) seen.add(Math.floor((id - 1) / 100));
    expect(seen.size).toBe(250);
  });

  it('looks at a thousand accounts, if the rows of most are not due', async () => {
    await add('busy', 2000);
    await fresh.database.query("INSERT INTO item SELECT 10000 + n, 'u' || n, 1, false FROM generate_series(1, 1900) AS n");
    const [last = 0] = await add('z', 1);
    expect(await next()).not.toContain(last);
    expect(await next()).toContain(last);
  });

  it.each([3, 10_000])('has the rows of the other accounts, if those of one cannot be handled and it has %i', async (count) => {
    const [busy] = [await add('busy', count), await add('busier', 2)];
    const ids = [...(await add('a', 2)), ...(await add('z', 1))];
    const { rows, isFull } = await batches.next(fresh.database, ['busy', 'busier']);
    expect(rows.map(({ id }) => id)).toEqual(ids);
    expect(isFull).toBe(false);
    expect((await batches.next(fresh.database)).rows.map(({ id }) => id)).toContain(busy[0]);
  });

  it('has the row of an account behind two thousand without due rows, if the oldest rows cannot be handled', async () => {
    await add('busy', 1000);
    await fresh.database.query("INSERT INTO item SELECT 10000 + n, 'u' || n, 1, false FROM generate_series(1, 2000) AS n");
    const ids = await add('z', 1);
    expect((await batches.next(fresh.database, ['busy'])).rows.map(({ id }) => id)).toEqual(ids);
  });

  it('has the oldest rows only, while some of them have no account', async () => {
    const [first = 0] = await add('busy', 1000);
    await add(null, 1);
    await add('a', 1);
    expect(await next()).toEqual(Array.from({ length: 500 }, (_, n) => first + n));
  });
});
