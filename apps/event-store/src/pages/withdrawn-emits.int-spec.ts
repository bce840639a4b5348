import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { EmitterId, WaitingEmitKey } from '#contracts';
import { isTransient } from '#database';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { EventPagesRepository } from './event-pages.repository.js';

const emit = (emitter_id: EmitterId, emit_id: string): WaitingEmitKey => ({ emitter_id, emit_id });

describe('the withdrawn emits', () => {
  let db: FreshDatabase;
  let pages: EventPagesRepository;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    pages = new EventPagesRepository(db.database);
    await db.database.query("INSERT INTO withdrawn_emit (emitter_id, emit_id) VALUES ('dc_1', 'a'), ('dc_1', 'b'), ('dc_2', 'c')");
  });
  afterAll(() => db.drop());

  it('are returned for the requested emits, each of its emitter', async () => {
    const found = await pages.withdrawn([emit('dc_1', 'b'), emit('dc_1', 'c'), emit('dc_2', 'c'), emit('dc_2', 'a'), emit('dc_3', 'a')]);
    expect(found.sort((a, b) => (a.emit_id < b.emit_id ? -1 : 1))).toEqual([emit('dc_1', 'b'), emit('dc_2', 'c')]);
  });

  it('include emits beyond the last 100 of `$in`, if a deletion covers the time since which they wait', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id) VALUES
        ('dc_in', 1000, 0, '$in', NULL, NULL), ('dc_all', 1000, 0, NULL, NULL, NULL), ('dc_named', 1000, 0, '*', NULL, NULL),
        ('dc_part', 1000, 0, '$in', '400-0', '600-5');
      INSERT INTO event (emitter_id, stream, ms, seq, emit_id, event) VALUES ('dc_in', '$in', 1001, 0, 'shown', '1')`);
    const since = (emitter_id: EmitterId, emit_id: string, since_ms?: number) => ({ emitter_id, emit_id, since_ms });
    const found = await pages.withdrawn([
      ...[since('dc_in', 'before', 999), since('dc_in', 'after', 1000), since('dc_in', 'shown', 990), since('dc_in', 'unknown')],
      ...[since('dc_all', 'before', 999), since('dc_named', 'before', 999)],
      ...[399, 400, 599, 600].map((ms) => since('dc_part', `${ms}`, ms)),
    ]);
    expect(found).toEqual([emit('dc_in', 'before'), emit('dc_all', 'before'), emit('dc_part', '400'), emit('dc_part', '599')]);
  });

  it('do not include emits that have one millisecond in common with deleted events, because others of it may not be deleted', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id) VALUES
        ('dc_event', 1000, 0, NULL, '500-7', '500-7'), ('dc_bounds', 1000, 0, NULL, '500-7', '502-7')`);
    const found = await pages.withdrawn([
      { ...emit('dc_event', 'a'), since_ms: 500 },
      ...[500, 501, 502].map((since_ms) => ({ ...emit('dc_bounds', `${since_ms}`), since_ms })),
    ]);
    expect(found).toEqual([emit('dc_bounds', '501')]);
  });

  it('are found in a short time among many deletions', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id)
      SELECT 'dc_many', 1000000, n, NULL, (10 * n) || '-0', (10 * n + 5) || '-0' FROM generate_series(1, 20000) AS n`);
    const requested = Array.from({ length: 500 }, (_, n) => ({ ...emit('dc_many', `${n}`), since_ms: 1001 + n }));
    const start = performance.now();
    const found = await pages.withdrawn(requested);
    expect(performance.now() - start).toBeLessThan(2000);
    expect(found).toEqual(requested.filter(({ since_ms }) => since_ms % 10 < 5).map(({ emit_id }) => emit('dc_many', emit_id)));
    await db.database.query("INSERT INTO deleted_range (emitter_id, ms, seq, end_id) VALUES ('dc_many', 1000000, 0, '1000-0')");
    expect(await pages.withdrawn(requested.map((each) => ({ ...each, since_ms: each.since_ms - 600 })))).toHaveLength(500);
  });

  it('are not looked for any longer than their caller waits', async () => {
    const blocker = await db.database.connect();
    await blocker.query('BEGIN; LOCK TABLE withdrawn_emit');
    const failure = await pages.withdrawn([emit('dc_1', 'a')]).catch((error: unknown) => error);
    blocker.release(true);
    expect(failure).toMatchObject({ code: '57014' });
    expect(isTransient(failure)).toBe(true);
  }, 20_000);

  it('are empty for an empty request', async () => expect(await pages.withdrawn([])).toEqual([]));
});
