import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type EmitterId, Invalid, TimedOut } from '#contracts';
import { BEFORE_ALL, deletedBy, type EventPlace } from '#events';
import { type FreshDatabase, freshDatabase, seededRandom } from '#testing';
import { schema } from '../database/schema.js';
import { EventPagesRepository } from './event-pages.repository.js';
import { pageWindow } from './event-pages.service.js';

const EMITTER: EmitterId = 'dc_1';
const id = (n: number) => `${n}-${n}`;

describe('a page of events', () => {
  let db: FreshDatabase;
  let pages: EventPagesRepository;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    pages = new EventPagesRepository(db.database);
    // more than are kept: 31 to 130 are seen
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event, truncated)
       SELECT n, n, $1, '', n, convert_to(n::text, 'UTF8'), CASE WHEN n = 130 THEN 'short'::bytea END FROM generate_series(1, 130) AS n`,
      [EMITTER],
    );
  });
  afterAll(() => db.drop());

  const page = (cursors: { limit?: number; after?: string; before?: string }, stream = '', options = { whole: false, maxBytes: 1e6 }) =>
    pages.page(EMITTER, stream, pageWindow({ limit: 3, ...cursors }), options);

  it.each([
    ['the newest', {}, [130, 129, 128]],
    ['after a cursor: older ones', { after: id(100) }, [99, 98, 97]],
    ['before a cursor: those directly before it, newest first', { before: id(100) }, [103, 102, 101]],
    ['at the newer end', { before: id(129) }, [130]],
    ['before the newest', { before: id(130) }, []],
    ['at the older end', { after: id(33) }, [32, 31]],
    ['after the oldest', { after: id(31) }, []],
    ['after what is no longer kept', { after: id(10) }, []],
    ['before what is no longer kept', { before: id(10) }, [33, 32, 31]],
    ['between two cursors, all of it', { after: id(104), before: id(101) }, [103, 102]],
    ['between two cursors, from its after end', { after: id(110), before: id(90) }, [109, 108, 107]],
    ['between two cursors that do not meet', { after: id(90), before: id(110) }, []],
    ['of a cursor in between', { after: '100-50' }, [99, 98, 97]],
    ['of a cursor without an event', { after: '100-999999' }, [100, 99, 98]],
    ['with a limit over what is kept', { limit: 100 }, Array.from({ length: 100 }, (_, i) => 130 - i)],
  ])('%s', async (_, cursors, expected) => {
    const { total, events, cut } = await page(cursors);
    expect(events.map(({ ms }) => ms)).toEqual(expected);
    expect([total, cut]).toEqual([100, false]);
  });

  it('has its emitters found by the offsets of their records', async () => {
    const [partition, emitter] = [3, 'dc_7'];
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
       SELECT 1000 + n, n * 4096 + $2, $1, CASE n WHEN 5 THEN '$errors' ELSE '' END, n, '1'::bytea FROM generate_series(1, 9) AS n`,
      [emitter, partition],
    );
    const between = (from_offset: number, to_offset: number, since_ms = 0) =>
      pages.emittersBetween({ partition, from_offset, to_offset, since_ms }, Infinity);
    expect(await between(2, 7)).toEqual([{ emitter_id: emitter, events: 4 }]);
    expect(await between(2, 7, 1004)).toEqual([{ emitter_id: emitter, events: 2 }]);
    expect(await between(10, 100)).toEqual([]);
    await expect(pages.emittersBetween({ partition, from_offset: 0, to_offset: 9, since_ms: 0 }, 0)).rejects.toBeInstanceOf(TimedOut);
    await db.database.query('DELETE FROM event WHERE emitter_id = $1', [emitter]);
  });

  it('finds the emitters of a part of the log in several statements, each for at most 100 emitters', async () => {
    const partition = 5;
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
       SELECT 1000 + n, n * 4096 + $1, 'dc_z' || lpad(emitter::text, 3, '0'), '', n, '1' FROM generate_series(1, 250) AS emitter, generate_series(emitter, emitter + 1) AS n`,
      [partition],
    );
    const query = jest.spyOn(db.database, 'query');
    try {
      const found = await pages.emittersBetween({ partition, from_offset: 90, to_offset: 220, since_ms: 0 }, Infinity);
      expect(query.mock.calls.length).toBeGreaterThan(2);
      expect(found).toHaveLength(131);
      expect([found[0], found[1], found.at(-1)]).toEqual([
        { emitter_id: 'dc_z089', events: 1 },
        { emitter_id: 'dc_z090', events: 2 },
        { emitter_id: 'dc_z219', events: 1 },
      ]);
    } finally {
      query.mockRestore();
      await db.database.query("DELETE FROM event WHERE emitter_id LIKE 'dc_z%'");
    }
  });

  it('has the deletions that include a place between two places', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, start_id, end_id) VALUES
        ('dc_8', 5, 1, NULL, NULL), ('dc_8', 5, 2, NULL, '605-0'), ('dc_8', 90, 0, '10-2', '10-4'), ('dc_8', 90, 1, '9-7', NULL), ('dc_8', 90, 2, NULL, '10-1')`);
    const between = async (from: EventPlace, to: EventPlace) =>
      (await pages.deletions('dc_8', from, to, 100)).map(({ at_id }) => at_id).sort();
    const at = (ms: number, seq: number) => ({ ms, seq });
    // of two deletions of the same range, the last one: none deletes what comes after it
    expect(await between(BEFORE_ALL, at(1000, 0))).toEqual(['5-2', '90-0', '90-1', '90-2']);
    expect(await pages.deletions('dc_8', BEFORE_ALL, at(1000, 0), 3)).toHaveLength(3);
    expect(await between(at(5, 1), at(5, 2))).toEqual(['5-2', '90-2']);
    expect(await between(at(10, 1), at(10, 2))).toEqual(['90-0', '90-1', '90-2']);
    expect(await between(at(10, 3), at(10, 9))).toEqual(['90-0', '90-1']);
    expect(await between(at(10, 5), at(11, 0))).toEqual(['90-1']);
    const after = await pages.deletions('dc_8', at(10, 1), at(10, 9), 100, at(90, 0));
    expect(after.map(({ at_id }) => at_id).sort()).toEqual(['90-1', '90-2']);
    expect(await pages.lastDeletion('dc_8')).toEqual({ stream: null, start_id: null, end_id: '10-1', at_id: '90-2' });
    expect(await pages.lastDeletion('dc_7')).toBeUndefined();
  });

  it('has one deletion of each stream that includes a place, because one is enough to delete its event', async () => {
    await db.database.query(`
      INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id) VALUES
        ('dc_9', 90, 0, '', '10-0', '10-4'), ('dc_9', 90, 1, '', '10-0', '10-5'), ('dc_9', 90, 2, '$logs', NULL, NULL), ('dc_9', 90, 3, NULL, '11-0', NULL)`);
    const streams = async (ms: number) => {
      const place = { ms, seq: 1 };
      return (await pages.deletions('dc_9', place, place, 100)).map(({ stream }) => stream);
    };
    expect(await streams(10)).toEqual(['', '$logs']);
    expect(await streams(11)).toEqual(['$logs', null]);
  });

  it('has deletions that delete what each of them has deleted', async () => {
    const random = seededRandom(Number(process.env.SLUICE_SEED));
    const some = (below: number): number => Math.floor(random() * below);
    const id = () => (some(3) === 0 ? null : `${some(12)}-${some(3)}`);
    const all = Array.from({ length: 60 }, (_, n) => ({
      ...{
        emitter: `dc_r${n % 10}` as EmitterId,
        stream: [null, '', '*'][some(3)]!,
        start_id: id(),
        end_id: id(),
        at: [some(12), n] as const,
      },
    }));
    for (const { emitter, stream, start_id, end_id, at } of all)
      await db.database.query('INSERT INTO deleted_range (emitter_id, stream, start_id, end_id, ms, seq) VALUES ($1, $2, $3, $4, $5, $6)', [
        ...[emitter, stream, start_id, end_id, ...at],
      ]);
    for (const emitter of new Set(all.map((each) => each.emitter))) {
      const own = all.filter((each) => each.emitter === emitter).map((each) => ({ ...each, at_id: each.at.join('-') }));
      const isDeleted = deletedBy(await pages.deletions(emitter, BEFORE_ALL, { ms: 100, seq: 0 }, 100));
      for (let ms = 0; ms < 12; ms++) {
        const place = { ms, seq: some(3) };
        expect([isDeleted('', place), place, own]).toEqual([deletedBy(own)('', place), place, own]);
        const ofOne = await pages.deletions(emitter, place, place, 100);
        expect([deletedBy(ofOne)('', place), place, own]).toEqual([deletedBy(own)('', place), place, own]);
        expect(new Set(ofOne.map(({ stream }) => stream)).size).toBe(ofOne.length);
      }
    }
  });

  it('a page of a stream without events is empty', async () => {
    expect(await page({}, 'none')).toEqual({ total: 0, events: [], cut: false });
  });

  it('a page of * merges the default stream and the custom ones, each with its last 100', async () => {
    const other: EmitterId = 'dc_2';
    await db.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
       SELECT n, n, $1, CASE n % 4 WHEN 0 THEN '' WHEN 1 THEN 'a' WHEN 2 THEN '$errors' ELSE '$in' END, n, convert_to(n::text, 'UTF8')
       FROM generate_series(1, 480) AS n`,
      [other],
    );
    const merged = (cursors: { limit?: number; after?: string; before?: string }) =>
      pages.page(other, '*', pageWindow({ limit: 3, ...cursors }), { whole: false, maxBytes: 1e6 });
    const shown = async (cursors: Parameters<typeof merged>[0]) => (await merged(cursors)).events.map(({ ms, stream }) => [ms, stream]);
    expect(await shown({})).toEqual([
      [480, ''],
      [477, 'a'],
      [476, ''],
    ]);
    expect(await shown({ before: id(470) })).toEqual([
      [476, ''],
      [473, 'a'],
      [472, ''],
    ]);
    expect(await shown({ after: id(84) })).toEqual([[81, 'a']]);
    expect((await merged({})).total).toBe(200);
    expect(await pages.streams(other)).toEqual([
      { event_name: '', count: 100, last_event_at: 0 },
      { event_name: '$errors', count: 100, last_event_at: 0 },
      { event_name: 'a', count: 100, last_event_at: 0 },
    ]);
    expect(await pages.streams('dc_3')).toEqual([]);
  });

  it('shows large events truncated, or whole', async () => {
    const shown = async (whole: boolean) => (await page({ limit: 1 }, '', { whole, maxBytes: 1e6 })).events[0]?.event.toString();
    expect([await shown(false), await shown(true)]).toEqual(['short', '130']);
  });

  it('is cut to what fits, at the end away from the cursor, and has at least one event', async () => {
    const cut = async (cursors: object, maxBytes: number) => {
      const result = await page({ limit: 4, ...cursors }, '', { whole: true, maxBytes });
      return [result.events.map(({ ms }) => ms), result.cut];
    };
    expect(await cut({}, 6)).toEqual([[130, 129], true]);
    expect(await cut({ before: id(100) }, 9)).toEqual([[103, 102, 101], true]);
    expect(await cut({}, 1)).toEqual([[130], true]);
    expect(await cut({ limit: 1 }, 1)).toEqual([[130], false]);
    expect(await cut({}, 12)).toEqual([[130, 129, 128, 127], false]);
  });

  it.each(['x', '1', '1-', '-1', '1-2-3', '1.0-2', '', '1-99999999999999999'])('refuses the cursor "%s"', (cursor) => {
    expect(() => pageWindow({ limit: 1, after: cursor })).toThrow(Invalid);
    try {
      pageWindow({ limit: 1, before: cursor, after: cursor });
    } catch (error) {
      expect((error as Invalid).details.errors?.map(({ field }) => field)).toEqual(['after', 'before']);
    }
  });
});
