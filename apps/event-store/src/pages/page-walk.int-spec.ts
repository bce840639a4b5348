import { eventIdOf, KEPT_EVENTS } from '#events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { EventPagesRepository, type ShownPage } from './event-pages.repository.js';
import { pageWindow } from './event-pages.service.js';

/** The operations between two pages. */
const change = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('nothing' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('emit' as const), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), from: fc.nat(200), to: fc.nat(200) }) },
);

describe('a walk over pages', () => {
  let db: FreshDatabase;
  let pages: EventPagesRepository;
  beforeAll(async () => {
    db = await freshDatabase(schema);
    pages = new EventPagesRepository(db.database);
  });
  afterAll(() => db.drop());

  const ids = (page: ShownPage): string[] => page.events.map(eventIdOf);

  it.each(['after', 'before'] as const)(
    'by %s shows no event twice and omits none that was stored all the time',
    async (direction) => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 130 }),
          fc.integer({ min: 1, max: 40 }),
          fc.array(change, { maxLength: 20 }),
          async (count, limit, changes) => {
            await db.database.query('TRUNCATE event');
            let newest = 0;
            const emit = async (more: number) => {
              // several in one millisecond
              await db.database.query(
                `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event) SELECT n / 3, n, 'dc_1', '', n, '1' FROM generate_series($1::int, $2::int) AS n`,
                [newest + 1, newest + more],
              );
              newest += more;
            };
            const shown = async (): Promise<Set<string>> =>
              new Set(ids(await pages.page('dc_1', '', pageWindow({ limit: KEPT_EVENTS }), { whole: false, maxBytes: 1e9 })));
            await emit(count);

            let allTheTime = await shown();
            const seen: string[] = [];
            // a walk to newer events begins before all of them
            let cursor: string | undefined = direction === 'before' ? '0-0' : undefined;
            const pending = [...changes];
            for (;;) {
              const page = await pages.page('dc_1', '', pageWindow({ limit, [direction]: cursor }), { whole: false, maxBytes: 1e9 });
              const found = ids(page);
              expect(found.length).toBeLessThanOrEqual(limit);
              if (found.length === 0) break;
              seen.push(...(direction === 'after' ? found : [...found].reverse()));
              cursor = direction === 'after' ? found.at(-1) : found[0];
              const next = pending.shift();
              if (next?.do === 'emit') await emit(next.count);
              if (next?.do === 'delete') await db.database.query('DELETE FROM event WHERE seq BETWEEN $1 AND $2', [next.from, next.to]);
              const now = await shown();
              allTheTime = new Set([...allTheTime].filter((id) => now.has(id)));
            }
            expect(new Set(seen).size).toBe(seen.length);
            const places = seen.map((id) => Number(id.split('-')[1]));
            expect(places).toEqual([...places].sort((a, b) => (direction === 'after' ? b - a : a - b)));
            for (const id of allTheTime) expect(seen).toContain(id);
          },
        ),
        { numRuns: 30 },
      );
    },
    60_000,
  );
});
