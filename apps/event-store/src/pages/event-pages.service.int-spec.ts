import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type EmitterId, type EmitterState, type ListDeletions, type ListEvents, NotFound, type UserId } from '#contracts';
import type { EventSummary } from '#events';
import { EmitterDirectory } from '#emitters';
import type { Messages } from '#messaging';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import type { StoreProgress } from '../append/store-progress.js';
import { EventPagesRepository } from './event-pages.repository.js';
import { EventPagesService } from './event-pages.service.js';

describe('listing events', () => {
  let db: FreshDatabase;
  let service: EventPagesService;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    const nobody = { request: async () => [] } as unknown as Messages;
    const directory = new EmitterDirectory(db.database, nobody);
    service = new EventPagesService(directory, new EventPagesRepository(db.database), {
      reachEnd: async () => {},
    } as unknown as StoreProgress);
    const state: Omit<EmitterState, 'emitter_id' | 'deleted'> = {
      kind: 'source',
      owner_id: 'u_1',
      active: false,
      version: 1,
      name: '',
      created_at_ms: 1,
    };
    await directory.learn({ ...state, emitter_id: 'dc_1', deleted: false });
    await directory.learn({ ...state, emitter_id: 'dc_gone', deleted: true });
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event, truncated, summary, item_id, item_ts) VALUES
       (1700000000001, 4097, 'dc_1', '', 'a"b', '{"x": 1e400}', NULL, NULL, NULL, NULL),
       (1700000000002, 8193, 'dc_1', '', 'e2', '"long"', '{"$truncated":true}', 'The "second"', '42', 1699999999999)`,
    );
  });
  afterAll(() => db.drop());

  const list = (request: Partial<ListEvents> = {}) =>
    service.list({ owner_id: 'u_1', emitter_id: 'dc_1', stream: '', limit: 10, ...request });

  it('shows events with the attributes of their emitter, byte for byte', async () => {
    const { page_info, items } = await list();
    expect(page_info).toEqual({ total_count: 2, count: 2, start_cursor: '1700000000002-8193', end_cursor: '1700000000001-4097' });
    expect(items.map((item) => JSON.parse(item) as EventSummary)).toEqual([
      {
        id: '1700000000002-8193',
        indexed_at_ms: 1700000000002,
        event: { $truncated: true },
        metadata: { emitter_id: 'dc_1', emit_id: 'e2', name: '', summary: 'The "second"', id: '42', ts: 1699999999999 },
      },
      {
        id: '1700000000001-4097',
        indexed_at_ms: 1700000000001,
        event: { x: Infinity },
        metadata: { emitter_id: 'dc_1', emit_id: 'a"b', name: '' },
      },
    ]);
    expect(items[1]).toContain('"event":{"x": 1e400},');
  });

  it('shows complete events with expand=event', async () => {
    expect(JSON.parse((await list({ expand: true, limit: 1 })).items[0] ?? '') as EventSummary).toMatchObject({ event: 'long' });
  });

  it('listing an empty stream returns an empty page', async () => {
    expect(await list({ stream: '$errors' })).toEqual({
      page_info: { total_count: 0, count: 0, start_cursor: null, end_cursor: null },
      items: [],
    });
  });

  it('refuses to list more deletions than a reply can have', async () => {
    await db.database.query(
      `INSERT INTO deleted_range (emitter_id, ms, seq, start_id, end_id)
       SELECT 'dc_1', 2e12, n, 1.7e12::bigint + n || '-1', 1.7e12::bigint + n || '-1' FROM generate_series(0, 50000) AS n`,
    );
    const deletions = (from: number, more: Partial<ListDeletions> = {}) =>
      service.deletions({ owner_id: 'u_1', emitter_id: 'dc_1', from_id: `${1.7e12 + from}-0`, ...more }, Infinity);
    await expect(deletions(0)).rejects.toMatchObject({ code: 'unprocessable' });
    const listed = await deletions(1);
    // with the last one, whatever it deletes
    expect(listed).toHaveLength(50_001);
    const last = { stream: null, start_id: '1700000050000-1', end_id: '1700000050000-1', at_id: '2000000000000-50000' };
    expect(listed.at(-1)).toEqual(last);
    expect(await deletions(0, { to_id: '1699999999999-0' })).toEqual([last]);
    expect(await deletions(0, { after_id: '2000000000000-49998' })).toHaveLength(3);
    expect(await deletions(0, { after_id: last.at_id })).toEqual([last]);
  });

  it.each<[string, EmitterId, UserId]>([
    ['source dc_2 not found', 'dc_2', 'u_1'],
    ['source dc_gone not found', 'dc_gone', 'u_1'],
    ['source dc_1 not found', 'dc_1', 'u_2'],
    ['workflow p_1 not found', 'p_1', 'u_1'],
  ])('fails with the message "%s"', async (message, emitter_id, owner_id) => {
    const page = list({ emitter_id, owner_id });
    await expect(page).rejects.toThrow(message);
    await expect(page).rejects.toBeInstanceOf(NotFound);
  });
});
