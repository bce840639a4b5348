import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { EmitterId, WaitingEmitKey } from '#contracts';
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

  it('include emits whose events `$in` no longer showed when its events were deleted', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id) VALUES
        ('dc_in', 1000, 0, '$in', NULL, NULL), ('dc_all', 1000, 0, NULL, NULL, NULL), ('dc_named', 1000, 0, '*', NULL, NULL),
        ('dc_part', 1000, 0, '$in', '400-0', '600-5');
      INSERT INTO event (emitter_id, stream, ms, seq, emit_id, event) VALUES ('dc_in', '$in', 1001, 0, 'shown', '1')`);
    const since = (emitter_id: EmitterId, emit_id: string, since_ms?: number) => ({ emitter_id, emit_id, since_ms });
    const found = await pages.withdrawn([
      ...[since('dc_in', 'before', 999), since('dc_in', 'after', 1000), since('dc_in', 'shown', 990), since('dc_in', 'unknown')],
      ...[since('dc_all', 'before', 999), since('dc_named', 'before', 999)],
      ...[399, 400, 600, 601].map((ms) => since('dc_part', `${ms}`, ms)),
    ]);
    expect(found).toEqual([emit('dc_in', 'before'), emit('dc_all', 'before'), emit('dc_part', '400'), emit('dc_part', '600')]);
  });

  it('are empty for an empty request', async () => expect(await pages.withdrawn([])).toEqual([]));
});
