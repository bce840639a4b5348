import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { type FreshDatabase, freshDatabase } from '#testing';
import { createLog } from '#observability';
import { Database, END_WHEN_IDLE, isOfData, isTransient, keepSession, readKeysetPage, STAY_WHEN_IDLE, type Transaction } from './index.js';
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

const schema = schemaOf('notes', { entities: [Note], migrations: [CreateNote1000000000001] });

/** Connects to a server as a network does. While it is silent, it delivers nothing, and closes nothing. */
async function silentNetwork(serverUrl: string) {
  const { hostname, port, searchParams } = new URL(serverUrl);
  const directory = searchParams.get('host');
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = directory ? connect(`${directory}/.s.PGSQL.${port || 5432}`) : connect(Number(port || 5432), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (data) => network.silent || to.write(data));
      from.on('error', () => to.destroy());
      from.on('end', () => network.silent || to.end());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  url.searchParams.delete('host');
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  const network = { url: url.toString(), silent: false, close };
  return network;
}

describe('the database', () => {
  let db: FreshDatabase;
  beforeAll(async () => {
    db = await freshDatabase(schema);
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

  it('does what follows a commit before the transaction returns, and not if the transaction fails', async () => {
    const seen: unknown[] = [];
    const insert = (id: string, error?: Error) =>
      db.database.transaction(async (transaction) => {
        transaction.afterCommit(async () => void seen.push(await db.database.rows(Note).findOneBy({ id })));
        await transaction.rows(Note).insert({ id });
        if (error) throw error;
      });
    await insert('e');
    await expect(insert('f', new Error('no'))).rejects.toThrow('no');
    expect(seen).toEqual([{ id: 'e', size: null }]);
    await db.database.rows(Note).delete({ id: 'e' });
  });

  it('runs statements that were prepared before a migration has added a column, on their own and in transactions', async () => {
    const { database } = db;
    const all = { name: 'all-notes', text: 'SELECT * FROM note ORDER BY id', values: [] };
    const inTransaction = () => database.transaction((transaction) => transaction.query(all));
    await Promise.all([database.query(all), database.query(all), inTransaction(), inTransaction()]);
    const connections = database.pool.totalCount;
    await database.query('ALTER TABLE note ADD COLUMN later int DEFAULT 7');
    const results = await Promise.all([database.query(all), inTransaction(), database.query(all), inTransaction()]);
    expect(results.map(({ rows }) => rows[0])).toEqual(Array(4).fill({ id: 'a', size: 2 ** 40, later: 7 }));
    expect(database.pool.totalCount).toBeLessThanOrEqual(connections);
    await database.query('ALTER TABLE note DROP COLUMN later');
  });

  it('gives the connection back when the server ends it in the middle of a transaction', async () => {
    const { database } = db;
    const broken = database.transaction((transaction) => transaction.query('SELECT pg_terminate_backend(pg_backend_pid())'));
    await expect(broken).rejects.toThrow();
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
    expect(await ids()).toEqual(['a', 'b']);
  });

  it.each<[string, (transaction: Transaction) => Promise<unknown>]>([
    ['SQL', (transaction) => transaction.query("INSERT INTO note (id) VALUES ('idle')")],
    ['TypeORM', (transaction) => transaction.rows(Note).insert({ id: 'idle' })],
    ['the commit', async () => {}],
  ])('fails with a transient error when the server has ended an idle transaction: %s', async (_, next) => {
    const work = db.database.transaction(async (transaction) => {
      await transaction.query("SET LOCAL idle_in_transaction_session_timeout = '20ms'");
      await new Promise((resolve) => setTimeout(resolve, 300));
      await next(transaction);
    });
    const error = await work.catch((thrown: unknown) => thrown);
    expect(isTransient(error)).toBe(true);
  });

  describe('behind a network that can fall silent', () => {
    let network: Awaited<ReturnType<typeof silentNetwork>>;
    let distant: Database;
    beforeAll(async () => {
      network = await silentNetwork(db.url);
      const { rows } = await db.database.query<{ name: string }>('SELECT current_database() AS name');
      const connection = { serverUrl: network.url, name: rows[0]!.name, max: 1, log: createLog('test', 'silent'), responseMs: 300 };
      distant = await Database.of(schema, connection).open();
    });
    afterAll(async () => {
      network.silent = false;
      await distant.close();
      await network.close();
    });

    const one = async () => (await distant.query<{ one: number }>('SELECT 1 AS one')).rows;

    it.each<[string, () => Promise<unknown>]>([
      ['a statement', () => distant.query("INSERT INTO note (id) VALUES ('late')")],
      ['a statement of TypeORM', () => distant.rows(Note).find()],
      ['a transaction', () => distant.transaction((transaction) => transaction.query("INSERT INTO note (id) VALUES ('late')"))],
    ])('%s fails with a transient error, and its connection is not used again', async (_, work) => {
      expect(await one()).toEqual([{ one: 1 }]);
      network.silent = true;
      const error = await work().catch((thrown: unknown) => thrown);
      network.silent = false;
      expect(error).toBeInstanceOf(Error);
      expect(isTransient(error)).toBe(true);
      expect(await one()).toEqual([{ one: 1 }]);
    });

    it('a transaction fails in its middle', async () => {
      const work = distant.transaction(async (transaction) => {
        await transaction.query("INSERT INTO note (id) VALUES ('late')");
        network.silent = true;
        await transaction.query("INSERT INTO note (id) VALUES ('later')");
      });
      expect(isTransient(await work.catch((thrown: unknown) => thrown))).toBe(true);
      network.silent = false;
      expect(await one()).toEqual([{ one: 1 }]);
    });

    it('a connection that waits for nothing stays open, and is closed when the network falls silent after that', async () => {
      const client = await distant.connect();
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect((await client.query('SELECT 2 AS two')).rows).toEqual([{ two: 2 }]);
      client.on('error', () => {});
      network.silent = true;
      expect(isTransient(await client.query('SELECT 2 AS two').catch((thrown: unknown) => thrown))).toBe(true);
      network.silent = false;
      client.release(true);
    });

    it('a transaction may have a statement that takes long, and the next one of its connection may not', async () => {
      const process = await distant.transaction(async (transaction) => {
        transaction.takeLong();
        return (await transaction.query<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep(0.6)')).rows[0]?.pid;
      });
      expect((await distant.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid).toBe(process);
      await expect(distant.query('SELECT pg_sleep(0.6)')).rejects.toThrow('PostgreSQL has not responded for 0.3 s');
    });
  });

  it('ends the session of a statement that waits for a lock when its connection is closed, and does not run the statement later', async () => {
    const { database, url } = db;
    const { rows } = await database.query<{ name: string }>('SELECT current_database() AS name');
    const name = rows[0]!.name;
    const setInterval = (interval: string) =>
      database.query(`ALTER DATABASE "${name}" SET client_connection_check_interval = '${interval}'`);
    await setInterval('100ms');
    const impatient = await Database.of(schema, { serverUrl: url, name, max: 4, log: createLog('test', 'silent'), responseMs: 300 }).open();
    await database.transaction(async (transaction) => {
      await transaction.query('LOCK TABLE note');
      const waiting = [1, 2, 3, 4].map((n) => impatient.query('INSERT INTO note (id) VALUES ($1)', [`orphan ${n}`]));
      const errors = await Promise.all(waiting.map((each) => each.catch((error: unknown) => error)));
      expect(errors.map(isTransient)).toEqual([true, true, true, true]);
      const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
      while ((await transaction.query(waits)).rows.length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    });
    expect(await ids()).toEqual(['a', 'b']);
    await impatient.close();
    await setInterval('10s');
  });

  it('ends a session with locks whose process runs no statement, but not one that runs some while it waits', async () => {
    const lost = new Set<string>();
    const hold = async (name: string) => {
      const client = await db.database.connect();
      client.on('error', () => lost.add(name));
      await client.query(`SELECT pg_try_advisory_lock(hashtext($1)), ${END_WHEN_IDLE.replace('20s', '500ms')}`, [name]);
      return client;
    };
    const [kept, frozen] = [await hold('kept'), await hold('frozen')];
    const release = keepSession((text) => kept.query(text), 50);
    while (lost.size === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await release();
    await kept.query(`SELECT ${STAY_WHEN_IDLE}`);
    expect([...lost]).toEqual(['frozen']);
    const { rows } = await db.database.query(
      "SELECT pg_try_advisory_xact_lock(hashtext(name)) AS is_free FROM unnest(ARRAY['frozen', 'kept']) AS name",
    );
    expect(rows).toEqual([{ is_free: true }, { is_free: false }]);
    for (const client of [kept, frozen]) client.release(true);
  });

  it('limits how long the server keeps a session whose process is gone', async () => {
    const { rows } = await db.database.query<{ setting: string }>(
      `SELECT unnest(setconfig) AS setting FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
       WHERE datname = current_database() ORDER BY 1`,
    );
    expect(rows.map(({ setting }) => setting)).toEqual([
      'client_connection_check_interval=10s',
      'idle_in_transaction_session_timeout=20s',
      'tcp_keepalives_count=3',
      'tcp_keepalives_idle=10',
      'tcp_keepalives_interval=5',
    ]);
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

  it('does not count the rows of a collection whose number is not needed', async () => {
    const collection = db.database.rows(Note).createQueryBuilder('note').where('note.id LIKE :like', { like: 'n%' });
    const count = jest.spyOn(collection, 'getCount');
    expect(await readKeysetPage(collection, { limit: 2, after: 'n3' }, { size: '1', withoutTotal: true })).toMatchObject({
      rows: [{ id: 'n2' }, { id: 'n1' }],
      total: 0,
    });
    expect(count).not.toHaveBeenCalled();
  });

  it('cuts a page to the rows that have few enough bytes together, but at least one', async () => {
    const { database } = db;
    await database.query("INSERT INTO note (id) SELECT 'long' || repeat('x', n) FROM generate_series(1, 4) AS n");
    const part = async (maxBytes: number, window: { limit: number; after?: string; before?: string }) => {
      const collection = database.rows(Note).createQueryBuilder('note').where('note.id LIKE :like', { like: 'long%' });
      const { rows, total, cut } = await readKeysetPage(collection, window, { size: 'length(note.id)', maxBytes });
      return [rows.map(({ id }) => id.length), total, cut];
    };
    expect(await part(26, { limit: 9 })).toEqual([[8, 7, 6, 5], 4, false]);
    expect(await part(25, { limit: 9 })).toEqual([[8, 7, 6], 4, true]);
    expect(await part(1, { limit: 9 })).toEqual([[8], 4, true]);
    expect(await part(1, { limit: 1 })).toEqual([[8], 4, false]);
    expect(await part(14, { limit: 9, after: 'longxxx' })).toEqual([[6, 5], 4, false]);
    expect(await part(14, { limit: 9, before: 'longx' })).toEqual([[7, 6], 4, true]);
    expect(await part(1, { limit: 9, after: 'long' })).toEqual([[], 4, false]);
  });
});
