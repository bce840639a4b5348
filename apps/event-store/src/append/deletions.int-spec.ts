import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DeletedRange, EventPlace } from '#events';
import { type FreshDatabase, freshDatabase, pagesRead } from '#testing';
import { schema } from '../database/schema.js';
import { AppendRepository } from './append.repository.js';

const [STREAMS, EVENTS] = [200, 100];
/** Between two events, which are ten milliseconds apart. */
const nothingAt = (n: number): EventPlace => ({ ms: n * 10 + 5, seq: 0 });

describe('a deletion from all streams of an emitter that has many', () => {
  let fresh: FreshDatabase;
  beforeAll(async () => {
    fresh = await freshDatabase(schema, { max: 1 });
    await fresh.database.query(
      `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
       SELECT n * 10, stream * 4096, 'dc_1', 's' || stream, n, '1' FROM generate_series(1, $1::int) AS n, generate_series(1, $2::int) AS stream`,
      [EVENTS, STREAMS],
    );
    await fresh.database.query('ANALYZE');
  });
  afterAll(() => fresh?.drop());

  const removed = async (ranges: [EventPlace, EventPlace][]): Promise<{ pages: number; events: number }> => {
    const deleted = ranges.map(([start, end]): DeletedRange => {
      return { kind: 'delete', place: { ms: 10_000, seq: 0 }, emitterId: 'dc_1', start, end, stream: null };
    });
    const count = async () => (await fresh.database.query<{ count: number }>('SELECT count(*)::int AS count FROM event')).rows[0]!.count;
    const before = await count();
    const repository = new AppendRepository(fresh.database);
    const pages = await pagesRead(fresh.database, () =>
      repository.transaction((transaction) => repository.removeRanges(transaction, 'dc_1', deleted, [])),
    );
    return { pages, events: before - (await count()) };
  };

  it('reads no event if none is in a few ranges, however far these are apart', async () => {
    const { pages, events } = await removed([-1, 30, EVENTS + 1].map((n) => [nothingAt(n), nothingAt(n)]));
    expect(events).toBe(0);
    // some of the index for each stream and range
    expect(pages).toBeLessThan(STREAMS * 20);
  });

  it('reads only the stream that has an event in the range', async () => {
    const one = { ms: 500, seq: 7 * 4096 };
    const { pages, events } = await removed([[one, one]]);
    expect(events).toBe(1);
    expect(pages).toBeLessThan(STREAMS * 20);
  });

  it('reads each event at most once for thousands of ranges', async () => {
    const { pages, events } = await removed(Array.from({ length: 3000 }, (_, n) => [nothingAt(n - 1000), nothingAt(n - 1000)]));
    expect(events).toBe(0);
    expect(pages).toBeLessThan(STREAMS * (EVENTS + 50));
  });
});
