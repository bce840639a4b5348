import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { schemaOf } from '#database';
import type { Consumers, GroupPosition } from '#messaging';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import { DatabaseRestores } from './database-restores.js';

const at = { group: 'routing.events', topic: 'events', partition: 2 };
const POSITION = { offset: 10, clock: 1010, timestamp: 910 };

describe('a database that was restored', () => {
  let db: FreshDatabase;
  /** The positions of this process, and those to which it must return. */
  let positions: GroupPosition[];
  let rewound: GroupPosition[][];

  beforeAll(async () => {
    db = await freshDatabase(schemaOf('restored'));
  });
  afterAll(() => db.drop());
  beforeEach(async () => {
    await db.database.query('TRUNCATE database_period, consumer_position');
    [positions, rewound] = [[], []];
  });

  const started = async (): Promise<DatabaseRestores> => {
    const consumers = { storedPositions: () => positions, rewind: (to: GroupPosition[]) => void rewound.push(to) } as unknown as Consumers;
    const restores = new DatabaseRestores(consumers, createLog('test', 'silent'));
    await restores.start(db.database);
    await restores.stop();
    return restores;
  };
  const move = (offset: number): GroupPosition => ({ ...at, offset, clock: 1000 + offset, timestamp: 900 + offset });

  it('sends a running process back to the positions in it', async () => {
    positions = [move(10)];
    const restores = await started();
    const backup = (await db.database.query('SELECT * FROM database_period')).rows[0]?.to_ms as number;
    positions = [move(20)];
    await restores.extendPeriod();
    await restores.extendPeriod();
    await db.database.query('UPDATE database_period SET to_ms = $1', [backup]);
    await db.database.query('UPDATE consumer_position SET next_offset = 10, last_ms = 1010, record_ms = 910');
    expect(rewound).toEqual([]);
    positions = [move(30)];
    await restores.extendPeriod();
    expect(rewound).toEqual([[move(10)]]);
    await restores.extendPeriod();
    expect(rewound).toHaveLength(1);
  });

  it('is recognised again until the service has noted it', async () => {
    positions = [move(10)];
    const restores = await started();
    let notes = 0;
    restores.onRestored(async () => {
      if (++notes === 1) throw new Error('not noted');
    });
    await db.database.query('TRUNCATE database_period');
    await expect(restores.extendPeriod()).rejects.toThrow('not noted');
    expect(rewound).toEqual([]);
    await restores.extendPeriod();
    await restores.extendPeriod();
    expect([notes, rewound.length]).toEqual([2, 1]);
    restores.onRestored(async () => {
      throw new Error('not noted');
    });
    await expect(restores.positionFor(at, restores.databaseMs + 100_000)).rejects.toThrow('not noted');
  });

  it('is reported once if its periods cannot be extended for another reason than an outage', async () => {
    const log = createLog('test', 'silent');
    const errors: unknown[] = [];
    log.error = (...[fields]: unknown[]) => void errors.push(fields);
    const consumers = { storedPositions: () => [] } as unknown as Consumers;
    const restores = new DatabaseRestores(consumers, log);
    await restores.start(db.database);
    await db.database.query('ALTER TABLE database_period RENAME TO hidden');
    try {
      await setTimeout(2500);
    } finally {
      await db.database.query('ALTER TABLE hidden RENAME TO database_period');
      await restores.stop();
    }
    expect(errors).toMatchObject([{ err: { message: expect.stringContaining('database_period') } }]);
  });

  it('shows for how long no process used it', async () => {
    const restores = await started();
    const hour = 3_600_000;
    expect(await restores.unusedMs(24 * hour)).toBe(0);
    const now = restores.databaseMs;
    const add = (from: number, to: number) =>
      db.database.query('INSERT INTO database_period (id, from_ms, to_ms) VALUES (gen_random_uuid(), $1, $2)', [now - from, now - to]);
    // two replicas until three hours ago, one until two hours ago that began an hour later, and one that has just started
    for (const [from, to] of [
      [30, 26],
      [20, 3],
      [19, 4],
      [2, 1],
    ] as const)
      await add(from * hour, to * hour);
    expect(await restores.unusedMs(24 * hour)).toBe((6 + 1 + 1) * hour);
    expect(await restores.unusedMs(12 * hour)).toBe((1 + 1) * hour);
    expect(await restores.unusedMs(hour / 2)).toBe(hour);
    // such as a share of another duration
    expect(await restores.unusedMs(hour / 2 + 0.5)).toBe(hour);
  });

  it('has the position that is valid instead of a commit that it does not know', async () => {
    positions = [move(10)];
    const before = await started();
    await before.extendPeriod();
    const restores = await started();
    expect(await restores.positionFor(at, restores.databaseMs)).toBeUndefined();
    expect(await restores.positionFor(at, before.databaseMs)).toBeUndefined();
    expect(await restores.positionFor(at, restores.databaseMs + 100_000)).toEqual(POSITION);
    // the backup is older than the first record of this partition
    expect(await restores.positionFor({ ...at, partition: 3 }, restores.databaseMs + 100_000)).toEqual({ offset: 0, clock: 0 });
  });

  it('has the position of a group whose commits the brokers have lost', async () => {
    positions = [move(10)];
    const restores = await started();
    expect(await restores.storedPosition(at)).toBeUndefined();
    await restores.extendPeriod();
    expect(await restores.storedPosition(at)).toEqual(POSITION);
  });

  it('has the last position of a process that ends during an extension, and a later time than before', async () => {
    positions = [move(10)];
    const restores = await started();
    const before = restores.databaseMs;
    const extending = restores.extendPeriod();
    positions = [move(20)];
    await restores.beforeLeaving();
    await extending;
    expect(await (await started()).storedPosition(at)).toMatchObject({ offset: 20 });
    expect(restores.databaseMs).toBeGreaterThan(before);
  });

  it('does not delay the end of a process when it does not respond', async () => {
    const log = createLog('test', 'silent');
    const warnings: unknown[] = [];
    log.warn = (...[fields]: unknown[]) => void warnings.push(fields);
    const restores = new DatabaseRestores({ storedPositions: () => [] } as unknown as Consumers, log);
    await restores.start(db.database);
    await restores.stop();
    const client = await db.database.pool.connect();
    try {
      await client.query('BEGIN; LOCK TABLE database_period');
      await restores.beforeLeaving();
      expect(warnings).toEqual([{ reason: 'the database has not responded within 1000 ms' }]);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });

  it('keeps the positions of partitions that the process lost while it extended its period', async () => {
    positions = [move(10)];
    const restores = await started();
    await restores.extendPeriod();
    const kept = { ...move(20), partition: 3 };
    positions = [move(20), kept];
    const extended = restores.extendPeriod();
    positions = [{ ...kept, offset: 21 }];
    await extended;
    const { rows } = await db.database.query('SELECT partition, next_offset FROM consumer_position ORDER BY partition');
    expect(rows).toEqual([
      { partition: 2, next_offset: 10 },
      { partition: 3, next_offset: 20 },
    ]);
  });

  it('recognises a commit that was made soon after the backup, when later processes have used the database for longer', async () => {
    positions = [move(10)];
    const lost = await started();
    await lost.extendPeriod();
    await db.database.query('TRUNCATE database_period');
    const restores = await started();
    for (let n = 0; n < 3; n++) await restores.extendPeriod();
    expect(await restores.positionFor(at, lost.databaseMs)).toEqual(POSITION);
  });

  it('keeps the periods that ended more than 30 days ago as one, because an idle group may have committed then', async () => {
    const [now, day] = [Date.now(), 24 * 3_600_000];
    for (const [from, to] of [
      [90, 80],
      [70, 60],
      [20, 10],
    ] as const)
      await db.database.query('INSERT INTO database_period VALUES (gen_random_uuid(), $1, $2)', [now - from * day, now - to * day]);
    for (let n = 0; n < 2; n++) {
      const restores = await started();
      for (const days of [85, 65, 15]) expect(await restores.positionFor(at, now - days * day)).toBeUndefined();
    }
    const { rows } = await db.database.query('SELECT from_ms, to_ms FROM database_period ORDER BY to_ms LIMIT 2');
    expect(rows).toEqual([
      { from_ms: now - 90 * day, to_ms: now - 60 * day },
      { from_ms: now - 20 * day, to_ms: now - 10 * day },
    ]);
  });

  it('is not suspected because another process has counted further', async () => {
    positions = [move(10)];
    const [one, other] = [await started(), await started()];
    for (let n = 0; n < 3; n++) await other.extendPeriod();
    expect(await one.positionFor(at, other.databaseMs)).toBeUndefined();
    expect(rewound).toEqual([]);
  });
});
