import { expect, it } from '@jest/globals';
import type { EventDeletion } from '#contracts';
import { cpuSeconds, seededRandom } from '#testing';
import { deletedBy } from './deletions.js';
import { comparePlaces, eventIdOf } from './event-id.js';
import { coversStream } from './streams.js';

const deletion = (more: Partial<EventDeletion>): EventDeletion => ({ stream: null, start_id: null, end_id: null, at_id: '50-1', ...more });

it.each<[boolean, string, Partial<EventDeletion>, string]>([
  [true, '', {}, 'of every stream'],
  [false, '', { at_id: '10-1' }, 'that came before the event'],
  [true, '', { stream: '' }, 'of the stream'],
  [false, 'mine', { stream: '' }, 'of another stream'],
  [true, 'mine', { stream: '*' }, 'of the default stream and all custom ones'],
  [false, '$errors', { stream: '*' }, 'of the default stream and all custom ones, for a reserved stream'],
  [true, '', { start_id: '20-2', end_id: '20-2' }, 'of exactly this event'],
  [false, '', { start_id: '20-3' }, 'of later events'],
  [false, '', { end_id: '20-1' }, 'of earlier events'],
])('returns %s for an event of the stream "%s" and a deletion %j, %s', (expected, stream, more) => {
  expect(deletedBy([deletion(more)])(stream, { ms: 20, seq: 2 })).toBe(expected);
});

const random = seededRandom(Number(process.env.SLUICE_SEED));
const some = (below: number): number => Math.floor(random() * below);
const pick = <T>(values: T[]): T => values[some(values.length)] as T;

it('returns for many deletions what each of them has deleted', () => {
  for (let round = 0; round < 200; round++) {
    const place = () => ({ ms: some(12), seq: some(3) });
    const ranges = Array.from({ length: some(12) }, () => ({
      stream: pick([null, '', 'mine', '*', '$errors']),
      start: pick([null, place()]),
      end: pick([null, place()]),
      at: place(),
    }));
    const isDeleted = deletedBy(
      ranges.map(({ stream, start, end, at }) => ({
        stream,
        start_id: start && eventIdOf(start),
        end_id: end && eventIdOf(end),
        at_id: eventIdOf(at),
      })),
    );
    for (const stream of ['', 'mine', 'other', '$errors']) {
      for (let ms = 0; ms < 12; ms++) {
        const event = { ms, seq: some(3) };
        const expected = ranges.some(
          ({ stream: named, start, end, at }) =>
            (named === null || coversStream(named, stream)) &&
            (!start || comparePlaces(start, event) <= 0) &&
            (!end || comparePlaces(event, end) <= 0) &&
            comparePlaces(event, at) < 0,
        );
        expect([isDeleted(stream, event), stream, event, ranges]).toEqual([expected, stream, event, ranges]);
      }
    }
  }
});

it('takes a short time for many events and deletions', async () => {
  const id = (ms: number) => eventIdOf({ ms, seq: 1 });
  const deletions = Array.from({ length: 20_000 }, (_, n) => deletion({ start_id: id(2 * n), end_id: id(2 * n), at_id: id(100_000) }));
  const events = Array.from({ length: 20_000 }, (_, ms) => ({ ms, seq: 1 }));
  let deleted = 0;
  const count = () => {
    const isDeleted = deletedBy(deletions);
    deleted = events.filter((place) => isDeleted('', place)).length;
  };
  expect(await cpuSeconds(count)).toBeLessThan(2);
  expect(deleted).toBe(10_000);
});
