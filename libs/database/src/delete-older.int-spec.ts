import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { freshDatabase, type FreshDatabase, untilLocked } from '#testing';
import { deleteOlder } from './delete-older.js';
import { schemaOf } from './schema.js';

const NOW = new Date();

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase(schemaOf('deletes', { entities: [], migrations: [] }));
  await fresh.database.query('CREATE TABLE item (id int PRIMARY KEY, at timestamptz NOT NULL)');
  await fresh.database.query('CREATE INDEX item_age ON item (at)');
});
afterAll(() => fresh?.drop());
beforeEach(() =>
  fresh.database.query("TRUNCATE item; INSERT INTO item SELECT n, now() - n * interval '1 hour' FROM generate_series(-1, 25) AS n"),
);

const left = async () => (await fresh.database.query<{ id: number }>('SELECT id FROM item ORDER BY id')).rows.map(({ id }) => id);

describe('deleting older rows', () => {
  it('deletes them in batches, and keeps the newer ones', async () => {
    const query = jest.spyOn(fresh.database, 'query');
    await deleteOlder(fresh.database, 'item', 'at', new Date(NOW.getTime() - 300_000), 10);
    expect(query).toHaveBeenCalledTimes(3);
    query.mockRestore();
    expect(await left()).toEqual([-1, 0]);
  });

  it('keeps a row that gets a new time meanwhile', async () => {
    let deleting: Promise<void> | undefined;
    await fresh.database.transaction(async (transaction) => {
      await transaction.query('UPDATE item SET at = now() WHERE id = 7');
      deleting = deleteOlder(fresh.database, 'item', 'at', new Date(NOW.getTime() - 300_000));
      await untilLocked(fresh);
    });
    await deleting;
    expect(await left()).toEqual([-1, 0, 7]);
  });
});
