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

  it('are empty for an empty request', async () => expect(await pages.withdrawn([])).toEqual([]));
});
