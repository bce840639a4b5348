import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type EmitterState, findEmitters } from '#contracts';
import { EmitterDirectory } from '#emitters';
import type { Messages } from '#messaging';
import { createLog } from '#observability';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { EventStoreConfig } from '../event-store.config.js';
import { DeletedEmitters, SweepService } from './sweep.service.js';
import { AppendRepository } from '../append/append.repository.js';

const HOUR_MS = 3_600_000;

/** The catalog, as far as the directory asks it. */
class FakeCatalog {
  emitters: EmitterState[] = [];
  asked: string[] = [];
  async request(contract: unknown, { ids }: { ids: string[] }): Promise<EmitterState[]> {
    expect(contract).toBe(findEmitters);
    this.asked.push(...ids);
    return this.emitters.filter(({ emitter_id }) => ids.includes(emitter_id));
  }
}

const state = (id: string, more: Partial<EmitterState> = {}): EmitterState => ({
  emitter_id: id as EmitterState['emitter_id'],
  kind: 'source',
  owner_id: 'u_1',
  active: true,
  deleted: false,
  version: 1,
  name: id,
  created_at_ms: 1,
  ...more,
});

describe('retention', () => {
  const log = createLog('test', 'silent');
  let db: FreshDatabase;
  let catalog: FakeCatalog;
  let directory: EmitterDirectory;
  let sweep: SweepService;

  beforeAll(async () => {
    db = await freshDatabase(schema);
  });
  afterAll(() => db.drop());
  beforeEach(async () => {
    await db.database.query('TRUNCATE event, emitter, withdrawn_emit, deleted_range');
    catalog = new FakeCatalog();
    const repository = new AppendRepository(db.database);
    directory = new EmitterDirectory(db.database, catalog as unknown as Messages, new DeletedEmitters(repository, log));
    sweep = new SweepService(repository, directory, EventStoreConfig.read({}), log);
  });

  const emit = (emitterId: string, count: number, ms = Date.now()) =>
    db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event) SELECT $3, n, $1, n % 2, n, '1' FROM generate_series(1, $2::int) AS n`,
      [emitterId, count, ms],
    );
  const counts = async () => {
    const { rows } = await db.database.query<{ emitter_id: string; count: number }>(
      'SELECT emitter_id, count(*) FROM event GROUP BY 1 ORDER BY 1',
    );
    return Object.fromEntries(rows.map((row) => [row.emitter_id, row.count]));
  };

  it('deletes the events of a deleted emitter', async () => {
    await emit('dc_a', 5);
    await emit('dc_b', 5);
    await directory.learn(state('dc_a'));
    await directory.learn(state('dc_a', { active: false, version: 2 }));
    expect(await counts()).toEqual({ dc_a: 5, dc_b: 5 });
    await directory.learn(state('dc_a', { deleted: true, version: 3 }));
    expect(await counts()).toEqual({ dc_b: 5 });
  });

  it('deletes the events of an emitter after its deletion is stored, some at a time, so that others do not wait', async () => {
    await emit('dc_a', 1500);
    const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const locking = db.database.transaction(async (transaction) => {
      await transaction.query("SELECT FROM event WHERE stream = '1' AND seq = 1499 FOR UPDATE");
      locked.resolve();
      await released.promise;
    });
    await locked.promise;
    const learning = directory.learn(state('dc_a', { deleted: true }));
    try {
      while ((await counts()).dc_a !== 500) await new Promise((resolve) => setTimeout(resolve, 5));
      expect((await directory.known(['dc_a'])).get('dc_a')).toMatchObject({ deleted: true });
    } finally {
      released.resolve();
      await Promise.all([locking, learning]);
    }
    expect(await counts()).toEqual({});
  });

  it('leaves the events of a deleted emitter to the sweep if the database fails', async () => {
    await emit('dc_a', 5);
    const failing = jest.spyOn(AppendRepository.prototype, 'deleteBefore').mockRejectedValueOnce(new Error('down'));
    expect(await directory.learn(state('dc_a', { deleted: true }))).toBe(true);
    failing.mockRestore();
    expect(await counts()).toEqual({ dc_a: 5 });
    expect(await sweep.sweep()).toEqual({ emitters: 1, deleted: 5, unknown: 0 });
  });

  it('keeps the events of a workflow that were emitted after its removal, because it may return', async () => {
    await db.database.query(
      "INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event) SELECT n, n, 'p_a', '', n, '1' FROM generate_series(1, 3) AS n",
    );
    await directory.learn(state('p_a', { kind: 'workflow', version: 2, active: false, deleted: true, removed_at_ms: 2 }));
    expect(await counts()).toEqual({ p_a: 2 });
    // the fact of its second removal was not read
    await directory.learn(state('p_a', { kind: 'workflow', version: 5, removed_at_ms: 3 }));
    expect(await counts()).toEqual({ p_a: 1 });
  });

  it('deletes events that were emitted in the name of a deleted emitter afterwards', async () => {
    await directory.learn(state('dc_a', { deleted: true }));
    await directory.learn(state('dc_b'));
    await emit('dc_a', 3);
    await emit('dc_b', 3);
    expect(await sweep.sweep()).toEqual({ emitters: 2, deleted: 3, unknown: 0 });
    expect(await counts()).toEqual({ dc_b: 3 });
  });

  it('deletes withdrawn emits long after their time, because the runtime may still look them up', async () => {
    await db.database.query(
      `INSERT INTO withdrawn_emit (emitter_id, emit_id, withdrawn_at) SELECT emitter, days, now() - days * interval '1 day'
       FROM unnest(ARRAY['dc_a', 'dc_b']) AS emitter, unnest(ARRAY[1, 370, 401]) AS days`,
    );
    await directory.learn(state('dc_a', { deleted: true }));
    await sweep.sweep();
    const { rows } = await db.database.query('SELECT emitter_id, emit_id FROM withdrawn_emit ORDER BY 1, 2');
    expect(rows).toEqual([
      { emitter_id: 'dc_a', emit_id: '1' },
      { emitter_id: 'dc_a', emit_id: '370' },
      { emitter_id: 'dc_b', emit_id: '1' },
      { emitter_id: 'dc_b', emit_id: '370' },
    ]);
  });

  it('deletes deletions of events long after the events have left the topic', async () => {
    await db.database.query(
      `INSERT INTO deleted_range (emitter_id, ms, seq, deleted_at) SELECT 'dc_a', days, 0, now() - days * interval '1 day' FROM unnest(ARRAY[1, 370, 401]) AS days`,
    );
    await sweep.sweep();
    const { rows } = await db.database.query<{ ms: number }>('SELECT ms FROM deleted_range ORDER BY 1');
    expect(rows.map(({ ms }) => ms)).toEqual([1, 370]);
  });

  it('keeps events of an unknown id for a day', async () => {
    await emit('dc_old', 3, Date.now() - 25 * HOUR_MS);
    await emit('dc_new', 3, Date.now() - 23 * HOUR_MS);
    expect(await sweep.sweep()).toEqual({ emitters: 2, deleted: 0, unknown: 3 });
    expect(await counts()).toEqual({ dc_new: 3 });
  });

  it('looks an id up in the catalog before it counts as unknown', async () => {
    await emit('dc_a', 3, 1);
    catalog.emitters = [state('dc_a')];
    expect(await sweep.sweep()).toEqual({ emitters: 1, deleted: 0, unknown: 0 });
    await sweep.sweep();
    expect(catalog.asked).toEqual(['dc_a']);
  });

  it('walks over more emitters than fit into one step', async () => {
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event) SELECT 1, n, 'dc_' || n / 3, '', n, '1' FROM generate_series(0, 1499) AS n`,
    );
    expect(await sweep.sweep()).toEqual({ emitters: 500, deleted: 0, unknown: 1500 });
    expect(await counts()).toEqual({});
  });
});
