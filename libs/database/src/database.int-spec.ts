import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { type FreshDatabase, freshDatabase } from '#testing';
import { isOfData, readKeysetPage } from './index.js';
import { Migration } from './migrate.js';
import { schemaOf } from './schema.js';

@Entity('note')
class Note {
  @PrimaryColumn('text')
  id!: string;

  @Column('bigint', { nullable: true })
  size!: number | null;
}
class CreateNote1000000000001 extends Migration {
  readonly sql = 'CREATE TABLE note (id text PRIMARY KEY, size bigint)';
}

describe('the database', () => {
  let db: FreshDatabase;
  beforeAll(async () => {
    db = await freshDatabase(schemaOf('notes', { entities: [Note], migrations: [CreateNote1000000000001] }));
  });
  afterAll(() => db.drop());

  const ids = async (): Promise<string[]> => (await db.database.rows(Note).find({ order: { id: 'ASC' } })).map(({ id }) => id);

  it('commits what SQL and a repository wrote in one transaction', async () => {
    await db.database.transaction(async (transaction) => {
      await transaction.rows(Note).insert({ id: 'a', size: 2 ** 40 });
      await transaction.query('INSERT INTO note (id) VALUES ($1)', ['b']);
    });
    expect(await db.database.rows(Note).findOneBy({ id: 'a' })).toEqual({ id: 'a', size: 2 ** 40 });
    expect(await ids()).toEqual(['a', 'b']);
  });

  it('rolls back what SQL and a repository wrote when the work throws', async () => {
    const work = db.database.transaction(async (transaction) => {
      await transaction.rows(Note).insert({ id: 'c' });
      await transaction.query('INSERT INTO note (id) VALUES ($1)', ['d']);
      throw new Error('changed my mind');
    });
    await expect(work).rejects.toThrow('changed my mind');
    expect(await ids()).toEqual(['a', 'b']);
  });

  it('recognises an error of data whether TypeORM or SQL raised it', async () => {
    const { database } = db;
    const errors = await Promise.all(
      [database.rows(Note).insert({ id: 'a' }), database.query("INSERT INTO note (id) VALUES ('a')")].map((work) =>
        work.catch((error) => error),
      ),
    );
    expect(errors.map(isOfData)).toEqual([true, true]);
  });

  it('gives the connection back when the server ends it in the middle of a transaction', async () => {
    const { database } = db;
    const broken = database.transaction((transaction) => transaction.query('SELECT pg_terminate_backend(pg_backend_pid())'));
    await expect(broken).rejects.toThrow();
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
    expect(await ids()).toEqual(['a', 'b']);
  });

  it('reads a page before and after an id, newest first, and counts all', async () => {
    const { database } = db;
    await database.query("INSERT INTO note (id) SELECT 'n' || n FROM generate_series(1, 5) AS n");
    const collection = () => database.rows(Note).createQueryBuilder('note').where('note.id LIKE :like', { like: 'n%' });
    const page = async (window: { after?: string; before?: string }) => {
      const { rows, total } = await readKeysetPage(collection(), { limit: 2, ...window });
      return [rows.map(({ id }) => id), total];
    };
    expect(await page({})).toEqual([['n5', 'n4'], 5]);
    expect(await page({ after: 'n4' })).toEqual([['n3', 'n2'], 5]);
    expect(await page({ before: 'n2' })).toEqual([['n4', 'n3'], 5]);
    expect(await page({ after: 'n4', before: 'n1' })).toEqual([['n3', 'n2'], 5]);
  });
});
