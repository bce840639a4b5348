import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { schemaOf } from '#database';
import { freshDatabase, type FreshDatabase } from '#testing';
import { countRows, changeCountedSize, WaitingEntriesRepository, waitingSchema } from './waiting-entries.js';

/** The size of a row without its data. */
const ROW = 512;

let fresh: FreshDatabase;
let entries: WaitingEntriesRepository;
beforeAll(async () => {
  fresh = await freshDatabase(schemaOf('waiting-data', waitingSchema));
  entries = new WaitingEntriesRepository(fresh.database);
  await fresh.database.query('CREATE TABLE parcel (owner text, data text)');
  await fresh.database.query("INSERT INTO parcel VALUES ('a', '1'), ('a', '22'), ('b', '333')");
  await fresh.database.query(countRows({ table: 'parcel', holder: 'owner', bytes: (row) => `octet_length(${row}data)` }));
});
afterAll(() => fresh?.drop());

const counts = async () =>
  Object.fromEntries(
    (await entries.counts((holder) => `upper(${holder})`)).map(({ account, rows, bytes }) => [account, [rows, bytes - rows * ROW]]),
  );

it('counts the rows that are there at first, and each change of them', async () => {
  expect(await counts()).toEqual({ A: [2, 3], B: [1, 3] });
  await fresh.database.query("INSERT INTO parcel VALUES ('a', '4444'), ('c', '5')");
  expect(await counts()).toEqual({ A: [3, 7], B: [1, 3], C: [1, 1] });
  await fresh.database.query("UPDATE parcel SET data = '' WHERE owner = 'a'");
  await fresh.database.query("UPDATE parcel SET data = '123' WHERE owner = 'b'");
  expect(await counts()).toEqual({ A: [3, 0], B: [1, 3], C: [1, 1] });
  await fresh.database.query("DELETE FROM parcel WHERE owner <> 'c'");
  await counts();
  expect(await counts()).toEqual({ C: [1, 1] });
  await fresh.database.query('TRUNCATE parcel');
  expect(await counts()).toEqual({});
});

it('counting leaves one entry for each holder, and none for a holder without rows', async () => {
  for (let n = 0; n < 3; n++) await fresh.database.query("INSERT INTO parcel VALUES ('a', '1'), ('b', '1')");
  await fresh.database.query("DELETE FROM parcel WHERE owner = 'b'");
  await counts();
  const { rows } = await fresh.database.query('SELECT holder, rows FROM waiting_entry');
  expect(rows).toEqual([{ holder: 'a', rows: 3 }]);
});

it('rows that are counted by another size from now on leave nothing when they are deleted', async () => {
  await fresh.database.query('TRUNCATE parcel');
  await fresh.database.query("INSERT INTO parcel VALUES ('a', '1')");
  await fresh.database.query('ALTER TABLE parcel ADD COLUMN bytes integer');
  await fresh.database.query(
    changeCountedSize({ table: 'parcel', holder: 'owner', bytes: (row) => `coalesce(${row}bytes, octet_length(${row}data))` }),
  );
  await fresh.database.query("INSERT INTO parcel VALUES ('a', '1', 10)");
  expect(await counts()).toEqual({ A: [2, 11] });
  await fresh.database.query('UPDATE parcel SET bytes = 12 WHERE bytes = 10');
  expect(await counts()).toEqual({ A: [2, 13] });
  await fresh.database.query('DELETE FROM parcel');
  await counts();
  expect(await counts()).toEqual({});
});
