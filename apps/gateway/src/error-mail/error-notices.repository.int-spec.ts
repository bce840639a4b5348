import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ErrorRaised, newId, type UserId } from '#contracts';
import { Database } from '#database';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { type DueMail, ErrorNotice, ErrorNoticesRepository, SeenError } from './error-notices.repository.js';

describe('the notices of errors', () => {
  let db: FreshDatabase;
  let database: Database;
  let notices: ErrorNoticesRepository;
  const owner = newId('user');

  beforeAll(async () => {
    db = await freshDatabase(schema);
    await db.database.query(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = 100', current_database()); END $$",
    );
    const { rows } = await db.database.query<{ name: string }>('SELECT current_database() AS name');
    database = await Database.of(schema, { serverUrl: db.url, name: rows[0]!.name, max: 5, log: createLog('test', 'silent') }).open();
    notices = new ErrorNoticesRepository(database, database.rows(SeenError));
    await database.query("INSERT INTO account (id, email, username) VALUES ($1, 'ada@example.com', 'ada')", [owner]);
  });
  afterAll(async () => {
    await database.close();
    await db.drop();
  });

  const error = (id: string, owner_id: UserId = owner): ErrorRaised => ({
    ...{ id, owner_id, subject_id: 'dc_1', code: 'Error', message: 'm', raised_at_ms: 1 },
  });
  const count = async (id: string): Promise<DueMail[]> => {
    const mails: DueMail[] = [];
    await notices.count(error(id), async (mail) => {
      // longer than a transaction may be idle
      await new Promise((resolve) => setTimeout(resolve, 300));
      mails.push(mail);
    });
    return mails;
  };

  it('are mailed once a day, however long the mail takes, with the number of errors since', async () => {
    expect([await count('1'), await count('1'), await count('2')]).toEqual([[{ email: 'ada@example.com', since: 0 }], [], []]);
    await database.query("UPDATE error_notice SET mailed_at = mailed_at - interval '25 hours'");
    expect(await count('3')).toEqual([{ email: 'ada@example.com', since: 1 }]);
  });

  it('are deleted after 90 days', async () => {
    await database
      .rows(ErrorNotice)
      .insert({ account_id: owner, subject_id: 'dc_2', code: 'Old', mailed_at: new Date(Date.now() - 91 * 86_400_000) });
    await notices.deleteOld();
    expect((await database.rows(ErrorNotice).find()).map(({ code }) => code)).toEqual(['Error']);
  });
});
