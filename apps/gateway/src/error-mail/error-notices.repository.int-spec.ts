import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ErrorRaised, newId, type UserId } from '#contracts';
import type { Database } from '#database';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { ErrorMail, ErrorNotice, ErrorNoticesRepository } from './error-notices.repository.js';

let db: FreshDatabase;
let database: Database;
let notices: ErrorNoticesRepository;
const [ada, bob] = ['u_ada', 'u_bob'] as UserId[] as [UserId, UserId];

beforeAll(async () => {
  db = await freshDatabase(schema);
  ({ database } = db);
  notices = new ErrorNoticesRepository(database, database.rows(ErrorMail));
  for (const id of [ada, bob])
    await database.query("INSERT INTO account (id, email, username) VALUES ($1, $1 || '@example.com', 'x')", [id]);
});
afterEach(async () => {
  await database.query('TRUNCATE error_notice, error_seen, error_mail');
  await database.query('UPDATE account SET error_mail = true, suspended_at = NULL');
});
afterAll(() => db.drop());

let ids = 0;
const error = (fields: Partial<ErrorRaised> = {}): ErrorRaised => ({
  ...{ id: `e${ids++}`, owner_id: ada, subject_id: 'dc_1', code: 'Error', message: 'm', raised_at_ms: 1 },
  ...fields,
});
/** The mails that are due, as one process takes them. */
async function leaseAll(): Promise<string[]> {
  const leased: string[] = [];
  for (let after = '', mail; (mail = await notices.leaseMail(after)); after = mail.account_id) {
    leased.push(`${mail.email}: ${mail.error.code}, ${mail.since} before${mail.is_last ? ', last' : ''}`);
    await notices.deleteMail(mail.id);
  }
  return leased;
}

describe('an error', () => {
  it('is mailed once a day, with the number of errors since the last mail', async () => {
    const repeated = error();
    for (const each of [repeated, repeated, error(), error({ code: 'Other' })]) await notices.count(each);
    expect(await leaseAll()).toEqual(['u_ada@example.com: Error, 0 before', 'u_ada@example.com: Other, 0 before']);
    await database.query("UPDATE error_notice SET mailed_at = mailed_at - interval '25 hours'");
    await notices.count(error());
    await notices.count(error());
    expect(await leaseAll()).toEqual(['u_ada@example.com: Error, 1 before']);
    expect(await database.rows(ErrorNotice).findOneBy({ code: 'Error' })).toMatchObject({ since: 1 });
  });

  it('is mailed with all its fields, also if its text cannot be stored', async () => {
    const raised = error({ message: 'a\0b\ud800', code: 'c\0', event_id: '1-2' });
    await notices.count(raised);
    expect(await notices.leaseMail('')).toMatchObject({ error: { ...raised, message: 'a\ufffdb\ufffd', code: 'c\ufffd' }, attempts: 1 });
  });

  it('is mailed at most a hundred times a day to one account, which the last mail mentions', async () => {
    for (let n = 0; n < 102; n++) await notices.count(error({ code: `C${n}` }));
    await notices.count(error({ owner_id: bob }));
    const mails = await leaseAll();
    expect(mails.filter((mail) => mail.startsWith('u_ada'))).toHaveLength(100);
    expect(mails.filter((mail) => mail.endsWith('last'))).toEqual(['u_ada@example.com: C99, 0 before, last']);
    // it is counted for the next mail
    await notices.count(error({ code: 'C5' }));
    expect(await database.rows(ErrorNotice).findOneBy({ code: 'C5' })).toMatchObject({ since: 1 });
  });

  it('is mailed once if two gateways count errors of the same kind at the same time', async () => {
    await Promise.all(Array.from({ length: 8 }, () => notices.count(error())));
    expect(await leaseAll()).toHaveLength(1);
    expect(await database.rows(ErrorNotice).findOneBy({ code: 'Error' })).toMatchObject({ since: 7 });
  });

  it.each(['error_mail = false', 'suspended_at = now()'])('is not mailed to an account with %s', async (state) => {
    await database.query(`UPDATE account SET ${state}`);
    await notices.count(error());
    await notices.count(error({ owner_id: newId('user') }));
    expect(await database.rows(ErrorMail).count()).toBe(0);
    expect(await database.rows(ErrorNotice).count()).toBe(0);
  });
});

describe('a mail that waits', () => {
  it.each(['error_mail = false', 'suspended_at = now()'])('has no recipient if its account has %s in the meantime', async (state) => {
    await notices.count(error());
    await database.query(`UPDATE account SET ${state}`);
    expect(await notices.leaseMail('')).toMatchObject({ account_id: ada, email: null });
  });

  it('is leased in turns with the mails of other accounts', async () => {
    for (const code of ['A', 'B', 'C']) await notices.count(error({ code }));
    await notices.count(error({ owner_id: bob }));
    expect(await leaseAll()).toEqual([
      'u_ada@example.com: A, 0 before',
      'u_bob@example.com: Error, 0 before',
      'u_ada@example.com: B, 0 before',
      'u_ada@example.com: C, 0 before',
    ]);
  });

  it('is leased when it is due, whichever other accounts have mails that are not', async () => {
    await database.query(
      `INSERT INTO error_mail (id, account_id, error, since, is_last, due_at)
       SELECT account || '-' || n, 'u_' || account, '{}', 0, false, now() + n * interval '1 minute'
       FROM generate_series(1, 100) AS account, generate_series(CASE WHEN account = 50 THEN -1 ELSE 1 END, 20) AS n`,
    );
    expect(await notices.leaseMail('u_7')).toMatchObject({ id: '50--1' });
    expect(await notices.leaseMail('u_50')).toMatchObject({ id: '50-0' });
    expect(await notices.leaseMail('u_50')).toBeUndefined();
    expect(await notices.countMails()).toBe(2002);
  });

  it('is leased by one gateway at a time, and by another one when the lease has expired', async () => {
    expect(await notices.msToNext()).toBeNull();
    await notices.count(error());
    expect(await notices.msToNext()).toBeLessThanOrEqual(0);
    const leased = await Promise.all([notices.leaseMail(''), notices.leaseMail('')]);
    expect(leased.filter((mail) => mail !== undefined)).toHaveLength(1);
    expect(await notices.msToNext()).toBeGreaterThan(14 * 60_000);
    await database.query("UPDATE error_mail SET due_at = due_at - interval '15 minutes'");
    expect(await notices.leaseMail('')).toMatchObject({ attempts: 2 });
  });

  it('is due again after the time by which it is postponed', async () => {
    await notices.count(error());
    const { id } = (await notices.leaseMail(''))!;
    await notices.postponeMail(id, 10);
    const ms = await notices.msToNext();
    expect(ms).toBeLessThanOrEqual(600_000);
    expect(ms).toBeGreaterThan(500_000);
  });

  it('wakes the sender of this process', async () => {
    const woken: number[] = [];
    notices.listen((inMs) => woken.push(inMs));
    await notices.count(error());
    await notices.count(error());
    expect(woken).toEqual([0]);
  });
});

describe('what is old', () => {
  it('is deleted: notices after 90 days, mails after a week', async () => {
    await notices.count(error({ code: 'Old' }));
    await database.query("UPDATE error_notice SET mailed_at = now() - interval '91 days'");
    await database.query("UPDATE error_mail SET created_at = now() - interval '8 days'");
    await notices.count(error());
    await notices.deleteOld();
    expect([await notices.deleteOldMails(), await notices.deleteOldMails()]).toEqual([1, 0]);
    expect((await database.rows(ErrorNotice).find()).map(({ code }) => code)).toEqual(['Error']);
    expect((await database.rows(ErrorMail).find()).map((mail) => mail.error.code)).toEqual(['Error']);
  });
});
