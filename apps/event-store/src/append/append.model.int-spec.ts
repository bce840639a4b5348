import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type FreshDatabase, freshDatabase, seededRandom } from '#testing';
import { isInRange, KEPT_EVENTS } from '#events';
import { schema } from '../database/schema.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import { StreamCounter, TrimCounter } from './stream-counters.js';
import { TestLog } from './log-for-tests.js';
import { apply, type Model } from './model-for-tests.js';

/** The results of the simulation, which uses a repository in memory, hold for the repository in SQL. */
describe('the store in PostgreSQL', () => {
  let db: FreshDatabase;
  beforeAll(async () => {
    db = await freshDatabase(schema);
  });
  afterAll(() => db.drop());

  const shown = async (): Promise<Record<string, string[]>> => {
    const { rows } = await db.database.query<{ key: string; events: string[] }>(
      `SELECT key, array_agg(ms || '-' || seq || ' ' || emit_id ORDER BY ms, seq) AS events
       FROM (SELECT emitter_id || ' ' || stream AS key, ms, seq, emit_id,
                    row_number() OVER (PARTITION BY emitter_id, stream ORDER BY ms DESC, seq DESC) AS nth FROM event) AS numbered
       WHERE nth <= ${KEPT_EVENTS} GROUP BY key`,
    );
    return Object.fromEntries(rows.map(({ key, events }) => [key, events]));
  };
  const withdrawn = async (): Promise<Set<string>> => {
    const { rows } = await db.database.query<{ key: string }>("SELECT emitter_id || ' ' || emit_id AS key FROM withdrawn_emit");
    return new Set(rows.map(({ key }) => key));
  };
  const expected = (model: Model): Record<string, string[]> =>
    Object.fromEntries(
      [...model]
        .filter(([, events]) => events.length > 0)
        .map(([key, events]) => [key, events.map(({ place, emitId }) => `${place.ms}-${place.seq} ${emitId}`)]),
    );

  it('equals the model after each batch, however the log is split into batches', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(1e6), fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 5, maxLength: 20 }), async (seed, sizes) => {
        await db.database.query('TRUNCATE event, event_progress, withdrawn_emit');
        const random = seededRandom(seed);
        const log = new TestLog(random);
        for (let n = 0; n < 40; n++) log.produce();
        const repository = new AppendRepository(db.database);
        // so few streams at a time that those of one emitter come apart
        class InSmallParts extends AppendService {
          protected override readonly replayedTogether = 1 + (seed % 3);
        }
        const service = new InSmallParts(repository, new TrimCounter(random), new StreamCounter(random));
        const model: Model = new Map();
        const withdrawnOfModel = new Set<string>();
        await repository.positions([0, 1]);
        for (const [partition, records] of log.partitions.entries()) {
          for (let offset = 0, batch = 0; offset < records.length; batch++) {
            const operations = records.slice(offset, offset + (sizes[batch % sizes.length] ?? 1)).map(({ operation }) => operation);
            const end = offset + operations.length;
            await service.append(partition, operations, { offset, clock: 0 }, { offset: end, clock: 0 });
            for (const operation of operations) for (const key of apply(model, operation)) withdrawnOfModel.add(key);
            offset = end;
            expect(await shown()).toEqual(expected(model));
            expect(await withdrawn()).toEqual(withdrawnOfModel);
          }
        }
      }),
      { numRuns: 15 },
    );
  }, 120_000);

  it('deletes exactly the events of the ranges that were visible', async () => {
    const bound = fc.option(fc.record({ ms: fc.integer({ min: -3, max: 160 }), seq: fc.integer({ min: -1, max: 3 }) }), { nil: null });
    const stream = fc.constantFrom(null, '', '$errors', 'none', '*');
    const place = fc.record({ ms: fc.integer({ min: 1, max: 150 }), seq: fc.integer({ min: 0, max: 2 }) });
    const range = fc.record({ start: bound, end: bound, stream });
    // more than are looked up one by one
    const one = fc.record({ start: place, stream }).map(({ start, stream }) => ({ start, end: start, stream }));
    const ranges = fc.oneof(fc.array(range, { minLength: 1, maxLength: 3 }), fc.array(one, { minLength: 1, maxLength: 60 }));
    await fc.assert(
      fc.asyncProperty(ranges, fc.integer({ min: 0, max: 150 }), async (ranges, count) => {
        await db.database.query('TRUNCATE event, event_progress');
        await db.database.query(
          `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
           SELECT n, n % 3, emitter, stream, n, '1' FROM generate_series(1, $1::int) AS n, unnest(ARRAY['', '$errors']) AS stream, unnest(ARRAY['dc_1', 'dc_2']) AS emitter`,
          [count],
        );
        const before = await shown();
        const repository = new AppendRepository(db.database);
        await repository.positions([0]);
        await new AppendService(repository, new TrimCounter(seededRandom(Number(process.env.SLUICE_SEED))), new StreamCounter()).append(
          0,
          ranges.map((range, seq) => ({ kind: 'delete', place: { ms: 0, seq }, emitterId: 'dc_1', ...range })),
          { offset: 0, clock: 0 },
          { offset: ranges.length, clock: 0 },
        );
        const isDeleted = (key: string, id: string) => {
          const [ms, seq] = (id.split(' ')[0] as string).split('-').map(Number) as [number, number];
          return key.startsWith('dc_1 ') && ranges.some((range) => isInRange(range, key.slice('dc_1 '.length), { ms, seq }));
        };
        const rest = Object.entries(before).map(([key, events]) => [key, events.filter((id) => !isDeleted(key, id))] as const);
        expect(await shown()).toEqual(Object.fromEntries(rest.filter(([, events]) => events.length > 0)));
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});
