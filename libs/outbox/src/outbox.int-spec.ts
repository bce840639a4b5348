import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { PoolClient } from 'pg';
import { type Database, schemaOf, type Transaction } from '#database';
import type { OutgoingRecord, Publisher } from '#messaging';
import { createLog, type Log, metrics } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import { addedToOutbox, addToOutbox, OutboxRelay, SEND_REFUSED_AGAIN } from './outbox.js';
import { outboxSchema } from './outbox-record.entity.js';

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase(schemaOf('outbox', outboxSchema));
});
afterAll(() => db.drop());

const tooLarge = () => Object.assign(new Error('too large'), { name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE' });

it('a record that Kafka refuses because of its size stays in the outbox, and the others are sent in order', async () => {
  const sent: string[] = [];
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      if (records.some(({ key }) => key === 'large')) throw tooLarge();
      sent.push(...records.map(({ key }) => key));
    },
  } as unknown as Publisher;
  const add = (...keys: string[]) =>
    db.database.transaction((transaction) =>
      addToOutbox(
        transaction,
        keys.map((key) => ({ topic: 'facts', key, value: 'x', account: 'u_1' })),
      ),
    );
  await add('a', 'large', 'b');
  const relay = new OutboxRelay(db.database, publisher, createLog('test', 'silent'));
  relay.onApplicationBootstrap();
  while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  await add('c', 'd');
  while (sent.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
  await relay.beforeApplicationShutdown();
  expect(sent).toEqual(['a', 'b', 'c', 'd']);
  const { rows } = await db.database.query<{ key: string }>('SELECT key FROM outbox');
  expect(rows).toEqual([{ key: 'large' }]);

  const next = new OutboxRelay(
    db.database,
    { send: async (records: OutgoingRecord[]) => void sent.push(...records.map(({ key }) => key)) } as unknown as Publisher,
    createLog('test', 'silent'),
  );
  next.onApplicationBootstrap();
  while (sent.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
  await next.beforeApplicationShutdown();
  expect(sent.at(-1)).toBe('large');
});

it('sends the bytes of each record as they were added, in their order', async () => {
  await db.database.query('TRUNCATE outbox');
  const values = [Buffer.from([0, 255, 92, 120]), null, '', 'ä{"a":"\\\\x00"}', null, Buffer.alloc(0), Buffer.alloc(100_000, 7), 'last'];
  await db.database.transaction((transaction) =>
    addToOutbox(
      transaction,
      values.map((value, n) => ({ topic: 'facts', key: String(n), value, account: 'u_1' })),
    ),
  );
  const sent: OutgoingRecord[] = [];
  const publisher = { send: async (records: OutgoingRecord[]) => void sent.push(...records) } as unknown as Publisher;
  const relay = new OutboxRelay(db.database, publisher, createLog('test', 'silent'));
  relay.onApplicationBootstrap();
  while (sent.length < values.length) await new Promise((resolve) => setTimeout(resolve, 5));
  await relay.beforeApplicationShutdown();
  expect(sent.map(({ key, value }) => [key, value])).toEqual(
    values.map((value, n) => [String(n), typeof value === 'string' ? Buffer.from(value) : value]),
  );
});

it('a record is sent early although 10 000 of another account are before it, and those keep their order', async () => {
  await db.database.query(
    `TRUNCATE outbox; INSERT INTO outbox (topic, key, headers, value, account_id)
     SELECT 'events', 'dc_busy', '{}', convert_to(n::text, 'UTF8'), 'u_busy' FROM generate_series(1, 10000) AS n;
     INSERT INTO outbox (topic, key, headers, value, account_id) VALUES ('events', 'dc_other', '{}', 'other', 'u_other')`,
  );
  const sent: string[] = [];
  const publisher = {
    send: async (records: OutgoingRecord[]) => void sent.push(...records.map(({ value }) => String(value))),
  } as unknown as Publisher;
  const relay = new OutboxRelay(db.database, publisher, createLog('test', 'silent'));
  relay.onApplicationBootstrap();
  while (sent.length < 10_001) await new Promise((resolve) => setTimeout(resolve, 5));
  await relay.beforeApplicationShutdown();
  expect(sent.indexOf('other')).toBeLessThan(1000);
  expect(sent.filter((value) => value !== 'other')).toEqual(Array.from({ length: 10_000 }, (_, n) => String(n + 1)));
});

it('sends a record whose transaction is committed long after those that follow it', async () => {
  await db.database.query('TRUNCATE outbox');
  const sent: string[] = [];
  const publisher = { send: async (records: OutgoingRecord[]) => void sent.push(...records.map(({ key }) => key)) } as unknown as Publisher;
  const add = (session: Pick<Transaction, 'query'>, key: string) =>
    addToOutbox(session as Transaction, [{ topic: 'facts', key, value: 'x', account: 'u_1' }]);
  const untilSent = async (count: number) => {
    while (sent.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  // for the relay, a minute passes between two batches
  const clock = jest.spyOn(performance, 'now');
  for (let n = 0, time = performance.now(); n < 1000; n++) clock.mockReturnValueOnce((time += 60_000));
  const relay = new OutboxRelay(db.database, publisher, createLog('test', 'silent'));
  relay.onApplicationBootstrap();
  await db.database.transaction(async (transaction) => {
    await add(transaction, 'late');
    for (let n = 0; n < 10; n++) {
      await add(db.database, 'early');
      await untilSent(n + 1);
    }
  });
  await untilSent(11);
  await relay.beforeApplicationShutdown();
  clock.mockRestore();
  expect(sent).toEqual([...Array<string>(10).fill('early'), 'late']);
});

it('knows the size of headers without reading them: they are not compressed, also if they were in the table from which they come', async () => {
  const headers = { ce_summary: '\u0001'.repeat(65_536) };
  await db.database.query(
    `TRUNCATE outbox; CREATE TABLE origin AS SELECT 'events' AS topic, 'dc_1' AS key, 'u_1' AS account_id,
       jsonb_build_object('ce_summary', repeat(chr(1), 65536)) AS headers, '1'::bytea AS value, 1 AS n`,
  );
  await db.database.transaction((transaction) =>
    addToOutbox(transaction, [{ topic: 'events', key: 'dc_1', value: '1', headers, account: 'u_1' }]),
  );
  await db.database.query(addedToOutbox('origin'));
  const sizes = (table: string) =>
    db.database.query<{ size: number; headers: unknown }>(`SELECT pg_column_size(headers) AS size, headers FROM ${table}`);
  expect((await sizes('origin')).rows[0]!.size).toBeLessThan(2000);
  expect((await sizes('outbox')).rows).toEqual(Array.from({ length: 2 }, () => ({ size: expect.any(Number), headers })));
  for (const { size } of (await sizes('outbox')).rows) expect(size).toBeGreaterThan(65_536);
});

it.each([
  ['values', `'{}', convert_to(repeat('x', 900000), 'UTF8')`],
  ['headers', `jsonb_build_object('ce_summary', repeat('x', 900000)), '1'`],
])('a record is sent before the second megabyte of %s of another account', async (_, large) => {
  await db.database.query(
    `TRUNCATE outbox; INSERT INTO outbox (topic, key, headers, value, account_id)
     SELECT 'events', 'dc_busy', ${large}, 'u_busy' FROM generate_series(1, 50) AS n;
     INSERT INTO outbox (topic, key, headers, value, account_id) VALUES ('events', 'dc_other', '{}', 'other', 'u_other')`,
  );
  const sent: string[] = [];
  const publisher = { send: async (records: OutgoingRecord[]) => void sent.push(...records.map(({ key }) => key)) } as unknown as Publisher;
  const relay = new OutboxRelay(db.database, publisher, createLog('test', 'silent'));
  relay.onApplicationBootstrap();
  while (sent.length < 51) await new Promise((resolve) => setTimeout(resolve, 5));
  await relay.beforeApplicationShutdown();
  expect(sent.indexOf('dc_other')).toBeLessThan(2);
});

it('a record that is not sent for half a minute is reported once, and its age is a metric; refused ones are counted separately', async () => {
  await db.database.query(
    `TRUNCATE outbox; INSERT INTO outbox (topic, key, headers, added_at, refused)
     VALUES ('facts', 'large', '{}', now() - interval '1 day', true), ('facts', 'k', '{}', now() - interval '40 s', false)`,
  );
  const logged: string[] = [];
  const log = { warn: (_: object, message: string) => logged.push(message) } as unknown as Log;
  const relay = new OutboxRelay(db.database, {} as Publisher, log);
  const valueOf = async (name: string) => (await metrics.getSingleMetric(name)!.get()).values[0]!.value;
  const age = () => valueOf('sluice_outbox_oldest_seconds');
  const refused = () => valueOf('sluice_outbox_refused_records');
  await relay.look();
  await relay.look();
  expect(logged).toEqual(['outbox.delayed']);
  expect(await age()).toBeGreaterThan(39);
  expect(await age()).toBeLessThan(100);
  expect(await refused()).toBe(1);
  await db.database.query('TRUNCATE outbox');
  await relay.look();
  expect([await age(), await refused()]).toEqual([0, 0]);
});

it('finds the refused records at a start without reading the others', async () => {
  await db.database.query(
    `TRUNCATE outbox; INSERT INTO outbox (topic, key, headers) SELECT 'facts', n::text, '{}' FROM generate_series(1, 3000) AS n; ANALYZE outbox`,
  );
  const { rows } = await db.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${SEND_REFUSED_AGAIN}`);
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('outbox_refused');
});

describe('a relay while another one is active', () => {
  let active: PoolClient;
  let connect: jest.SpiedFunction<Database['connect']>;
  let sent: string[];
  let relay: OutboxRelay;
  beforeEach(async () => {
    await db.database.query(`TRUNCATE outbox; INSERT INTO outbox (topic, key, headers, refused) VALUES ('facts', 'large', '{}', true)`);
    active = await db.database.connect();
    await active.query("SELECT pg_advisory_lock(hashtext('sluice.outbox'))");
    connect = jest.spyOn(db.database, 'connect');
    sent = [];
    const publisher = { send: async (records: OutgoingRecord[]) => void sent.push(...records.map(({ key }) => key)) };
    relay = new OutboxRelay(db.database, publisher as unknown as Publisher, createLog('test', 'silent'));
    relay.onApplicationBootstrap();
    await asked(1);
  });
  afterEach(async () => {
    await relay.beforeApplicationShutdown();
    connect.mockRestore();
    active.release(true);
  });

  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const session = async () => (await connect.mock.results.at(-1)!.value) as PoolClient & { processID: number };
  /** Waits until its newest session has requested the lock some more times. */
  const asked = async (times: number) => {
    while (connect.mock.calls.length === 0) await sleep(5);
    const query = jest.spyOn(await session(), 'query');
    while (query.mock.calls.length < times) await sleep(5);
    query.mockRestore();
  };

  it('leaves the refused records to that one', async () => {
    await relay.beforeApplicationShutdown();
    expect((await active.query<{ refused: boolean }>('SELECT refused FROM outbox')).rows).toEqual([{ refused: true }]);
  });

  it('keeps its session, and takes over within seconds', async () => {
    expect(connect).toHaveBeenCalledTimes(1);
    await active.query("SELECT pg_advisory_unlock(hashtext('sluice.outbox'))");
    const start = performance.now();
    while (sent.length === 0) await sleep(5);
    expect(performance.now() - start).toBeLessThan(3000);
    expect(sent).toEqual(['large']);
    expect(connect).toHaveBeenCalledTimes(1);
  });

  it('opens another session when it loses that one', async () => {
    await active.query('SELECT pg_terminate_backend($1)', [(await session()).processID]);
    while (connect.mock.calls.length < 2) await sleep(5);
    await asked(1);
    await active.query("SELECT pg_advisory_unlock(hashtext('sluice.outbox'))");
    while (sent.length === 0) await sleep(5);
    expect(sent).toEqual(['large']);
  });
});

it('loses its lock when its process is frozen, and keeps it while Kafka takes long', async () => {
  await db.database.query(`TRUNCATE outbox; INSERT INTO outbox (topic, key, headers) VALUES ('facts', 'k', '{}')`);
  const connect = jest.spyOn(db.database, 'connect');
  const [isSending, isSent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const send = () => (isSending.resolve(), isSent.promise);
  const relay = new OutboxRelay(db.database, { send } as unknown as Publisher, createLog('test', 'silent'));
  const setInterval = jest.spyOn(globalThis, 'setInterval');
  relay.onApplicationBootstrap();
  await isSending.promise;
  // it connects again if the lock of the test before was not free yet
  const client = (await connect.mock.results.at(-1)!.value) as PoolClient;
  expect((await client.query('SHOW idle_session_timeout')).rows).toEqual([{ idle_session_timeout: '20s' }]);
  const query = jest.spyOn(client, 'query');
  const [keep, everyMs] = setInterval.mock.calls.at(-1)!;
  keep();
  expect(query).toHaveBeenCalledTimes(1);
  expect(everyMs).toBeLessThan(20_000);
  isSent.resolve();
  await relay.beforeApplicationShutdown();
  expect(await db.database.query('SELECT FROM outbox')).toMatchObject({ rowCount: 0 });
  jest.restoreAllMocks();
});
