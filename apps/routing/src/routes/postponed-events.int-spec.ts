import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { type EmitterId, newId, type UserId } from '#contracts';
import { type DeletedRange, type EmittedEvent, eventPlace, eventRecord, readEventRecord } from '#events';
import { LogRecord } from '#messaging';
import { SecretBox } from '#secrets';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { HAS, NEXT, type Postponed, PostponedEventsRepository } from './postponed-events.repository.js';

const ALL = { except: [], limit: 100, bytes: 1_000_000 };
const box = new SecretBox([Buffer.alloc(32, 1)]);

let fixture: RoutingFixture;
let repository: PostponedEventsRepository;
beforeAll(async () => {
  fixture = await RoutingFixture.open();
  repository = new PostponedEventsRepository(fixture.database);
});
beforeEach(() => fixture.database.query('DELETE FROM postponed_event'));
afterAll(() => fixture?.close());

interface Given {
  partition?: number;
  offset: number;
  clock?: number;
  ownerId?: UserId;
  emitterId?: EmitterId;
  stream?: string;
  value?: Buffer;
  headers?: Record<string, Buffer | string | undefined>;
}

function postponed({
  partition = 0,
  offset,
  clock = 1000 + offset,
  ownerId = 'u_1',
  emitterId = 'dc_1',
  stream = 'default',
  ...rest
}: Given): Postponed {
  const value = rest.value ?? Buffer.from(String(offset));
  const message = { offset: String(offset), key: Buffer.from(emitterId), value, headers: rest.headers ?? {}, timestamp: String(clock) };
  const record = new LogRecord('events', partition, message as unknown as KafkaMessage, clock);
  return { ownerId, event: { emitterId, stream, place: eventPlace(record) } as EmittedEvent, record };
}

const offsetsOf = (records: { offset: number }[]): number[] => records.map(({ offset }) => offset);
const everything = [0, 1].map((partition) => ({ partition, clock: 1_000_000, offset: 0 }));

describe('a postponed event', () => {
  it('has the same content when it is read again', async () => {
    const emitterId = newId('source');
    const { headers, value } = eventRecord({
      ...{ emitterId, stream: 'x', emitId: 'e', json: Buffer.from('{"a":"\u00e9"}'), summary: 's', hops: 3 },
      cause: { root: 'r', spread: 7 },
    });
    const given = postponed({
      emitterId,
      offset: 7,
      stream: 'x',
      value,
      headers: { ...headers, empty: undefined, nul: 'a\u0000b', ['__proto__']: 'p' },
    });
    await repository.add([given]);
    const [stored] = await repository.next('u_1', everything, ALL);
    const read = (record: Parameters<typeof readEventRecord>[0]) => readEventRecord(record, { maxBytes: 1_000_000, signer: box });
    expect(read(stored!)).toEqual(read(given.record));
    expect(read(stored!)).toMatchObject({ kind: 'event', stream: 'x', hops: 3, cause: { root: 'r', spread: 7 } });
    expect(stored!.headerNames().toSorted()).toEqual(given.record.headerNames().toSorted());
    expect(stored!.header('empty')).toBeUndefined();
    expect(stored!.header('toString')).toBeUndefined();
  });

  it('is kept once, also if its record is read again', async () => {
    await repository.add([postponed({ offset: 1 }), postponed({ offset: 2 })]);
    await repository.add([postponed({ offset: 2 }), postponed({ offset: 3 })]);
    expect(offsetsOf(await repository.next('u_1', everything, ALL))).toEqual([1, 2, 3]);
  });

  it('is returned when all records of its partition before it are done', async () => {
    // two have the same clock
    const clocks = [1000, 1001, 1001, 1002];
    await repository.add(clocks.map((clock, offset) => postponed({ offset, clock })));
    await repository.add([postponed({ partition: 1, offset: 0, clock: 1000 })]);
    const below = async (clock: number, offset: number) => offsetsOf(await repository.next('u_1', [{ partition: 0, clock, offset }], ALL));
    expect(await below(0, 0)).toEqual([]);
    expect(await below(1001, 2)).toEqual([0, 1]);
    expect(await below(1002, 4)).toEqual([0, 1, 2, 3]);
    // another log, which has begun later
    expect(await below(5000, 1)).toEqual([0, 1, 2, 3]);
  });

  it('is returned after the clock of its partition has stepped back', async () => {
    const clocks = [1000, 9000, 9000, 1001, 1002];
    await repository.add(clocks.map((clock, offset) => postponed({ offset, clock })));
    const below = async (clock: number, offset: number, options: Partial<typeof ALL> = {}) =>
      offsetsOf(await repository.next('u_1', [{ partition: 0, clock, offset }], { ...ALL, ...options }));
    expect(await below(9000, 2)).toEqual([0, 3, 4, 1]);
    expect(await below(1001, 4)).toEqual([0, 3, 1, 2]);
    expect(await below(1002, 5)).toEqual([0, 3, 4, 1, 2]);
    expect(await below(1002, 5, { limit: 4 })).toEqual([0, 3, 4, 1]);
  });

  it('is returned in order, per account and partition, as many as fit', async () => {
    const value = Buffer.alloc(100, '1');
    await repository.add([4, 3, 2, 1].map((offset) => postponed({ offset, value })));
    await repository.add([postponed({ offset: 9, partition: 1, clock: 1003, value }), postponed({ offset: 10, ownerId: 'u_2' })]);
    const next = async (options: Partial<typeof ALL>, positions = everything) =>
      offsetsOf(await repository.next('u_1', positions, { ...ALL, ...options }));
    expect(await next({})).toEqual([1, 2, 3, 9, 4]);
    expect(await next({}, everything.slice(0, 1))).toEqual([1, 2, 3, 4]);
    expect(await next({ limit: 2 })).toEqual([1, 2]);
    expect(await next({ bytes: 221 })).toEqual([1, 2, 3]);
    expect(await next({ bytes: 1 })).toEqual([1]);
    const except = [eventPlace(postponed({ offset: 1 }).record).seq] as never[];
    expect(await next({ except })).toEqual([2, 3, 9, 4]);
    await repository.add([postponed({ offset: 0, headers: { ce_summary: 's'.repeat(1000) } })]);
    expect(await next({ bytes: 1000 })).toEqual([0]);
    expect(await repository.accounts()).toEqual(['u_1', 'u_2']);
    expect(await repository.has('u_1', [1], [])).toBe(true);
    expect(await repository.has('u_2', [1], [])).toBe(false);
  });

  it('is removed from the database when its tasks have ended', async () => {
    const events = [1, 2, 3].map((offset) => postponed({ offset }));
    await repository.add(events);
    await repository.remove(events.slice(0, 2).map(({ event }) => event.place));
    expect(offsetsOf(await repository.next('u_1', everything, ALL))).toEqual([3]);
    await repository.remove([events[2]!.event.place]);
    expect(await repository.accounts()).toEqual([]);
  });

  it('is withdrawn if it is deleted', async () => {
    await repository.add([1, 2, 3, 4].map((offset) => postponed({ offset, stream: offset === 2 ? 'x' : 'default' })));
    await repository.add([postponed({ offset: 5, emitterId: 'dc_2' }), postponed({ offset: 6, stream: '$errors' })]);
    const withdraw = async (change: Partial<DeletedRange>) => {
      const place = postponed({ offset: 100 }).event.place;
      await repository.withdraw([{ ...{ kind: 'delete', place, emitterId: 'dc_1', start: null, end: null, stream: null }, ...change }]);
      return offsetsOf(await repository.next('u_1', everything, ALL));
    };
    expect(await withdraw({ place: postponed({ offset: 1 }).event.place })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await withdraw({ stream: 'x' })).toEqual([1, 3, 4, 5, 6]);
    expect(await withdraw({ end: postponed({ offset: 1 }).event.place })).toEqual([3, 4, 5, 6]);
    expect(await withdraw({ start: postponed({ offset: 4 }).event.place, stream: '*' })).toEqual([3, 5, 6]);
    expect(await withdraw({})).toEqual([5]);
  });

  it('is withdrawn with others by several deletions', async () => {
    await repository.add([1, 2, 3, 4].map((offset) => postponed({ offset })));
    const deletion = (offset: number): DeletedRange => {
      const { place } = postponed({ offset }).event;
      return { kind: 'delete', emitterId: 'dc_1', place: postponed({ offset: 100 }).event.place, start: place, end: place, stream: null };
    };
    expect(await repository.withdraw([deletion(2), deletion(4), deletion(4)])).toBe(2);
    expect(offsetsOf(await repository.next('u_1', everything, ALL))).toEqual([1, 3]);
  });
});

it.each([
  ['the next postponed events of an account', NEXT, [/< ROW/, /< ROW.* AND \(seq </]],
  ['whether an account has postponed events', HAS, [/< ROW/]],
])('an index finds %s in a partition, however many others have', async (_, text, conditions) => {
  const { rows } = await fixture.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN (GENERIC_PLAN) ${text}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan.match(/using \w+/g)).toEqual(conditions.map(() => 'using postponed_event_of_partition'));
  expect(plan.match(/Index Cond: .*/g)).toEqual(conditions.map((condition) => expect.stringMatching(condition)));
});
