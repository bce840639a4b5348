import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId, type UserId } from '#contracts';
import { Database } from '#database';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import { AccountRow, ApiKeyRow } from '../accounts/account.entity.js';
import { AccountsRepository } from '../accounts/accounts.repository.js';
import { schema } from '../database/schema.js';
import { deleteAccountRows } from './account-rows.js';

let db: FreshDatabase;
beforeAll(async () => (db = await freshDatabase(schema)));
afterAll(() => db.drop());

it('deletes all rows of an account, and none of another one', async () => {
  const { database } = db;
  const accounts = new AccountsRepository(database, database.rows(AccountRow), database.rows(ApiKeyRow));
  const [id, other] = [newId('user'), newId('user')];
  for (const each of [id, other]) {
    await accounts.create(database, { id: each, email: `${each}@example.test`, username: 'name' });
    const key = { id: newId('apiKey'), account_id: each, hash: Buffer.from(each), prefix: '', name: null, scope: 'write' as const };
    await accounts.addKey(database, key);
    await database.query("INSERT INTO usage VALUES ($1, '2026-01-01', 1, 1)", [each]);
    await database.query("INSERT INTO idempotent_request (account_id, key, fingerprint) VALUES ($1, 'k', '')", [each]);
    await database.query("INSERT INTO error_notice VALUES ($1, 'dc_1', 'Error', now())", [each]);
    await database.query("INSERT INTO error_mail (id, account_id, error, since, is_last) VALUES ($1, $1, '{}', 0, false)", [each]);
  }
  const left = async (): Promise<UserId[][]> => {
    const owners = [
      ['account', 'id'],
      ...['api_key', 'usage', 'idempotent_request', 'error_notice', 'error_mail'].map((table) => [table, 'account_id']),
    ];
    return Promise.all(
      owners.map(async ([table, column]) =>
        (await database.query<{ owner: UserId }>(`SELECT ${column} AS owner FROM ${table} ORDER BY 1`)).rows.map(({ owner }) => owner),
      ),
    );
  };
  expect(await left()).toEqual(Array.from({ length: 6 }, () => [id, other].sort()));
  expect([await deleteAccountRows(database, accounts, id), await deleteAccountRows(database, accounts, id)]).toEqual([1, 0]);
  expect(await left()).toEqual(Array.from({ length: 6 }, () => [other]));
});

it('deletes them also when a statement takes longer than a server may usually be silent', async () => {
  const { rows } = await db.database.query<{ name: string }>('SELECT current_database() AS name');
  const log = createLog('test', 'silent');
  const database = await Database.of(schema, { serverUrl: db.url, name: rows[0]!.name, max: 1, log, responseMs: 1000 }).open();
  try {
    const accounts = new AccountsRepository(database, database.rows(AccountRow), database.rows(ApiKeyRow));
    const id = newId('user');
    await accounts.create(database, { id, email: `${id}@example.test`, username: 'name' });
    await database.query(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END';
      CREATE TRIGGER slow AFTER DELETE ON idempotent_request EXECUTE FUNCTION slow()`);
    await deleteAccountRows(database, accounts, id);
    expect(await accounts.find(id)).toBeUndefined();
  } finally {
    await database.close();
  }
});
