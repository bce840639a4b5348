import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { type EmitterId, newId, type UserId } from '#contracts';
import { type EmittedEvent, eventPlace } from '#events';
import { type Consumers, LogRecord } from '#messaging';
import { createLog } from '#observability';
import { RoutingFixture } from '../routing-fixture-for-tests.js';
import { MatchRepository } from './match.repository.js';
import type { PostponedEvents } from './postponed-events.js';
import { PostponedEventsRepository } from './postponed-events.repository.js';
import { UnknownEvents } from './unknown-events.js';
import { UnknownEventsRepository } from './unknown-events.repository.js';

const log = createLog('test', 'silent');

let fixture: RoutingFixture;
let repository: UnknownEventsRepository;
let unknown: UnknownEvents;
let owner: UserId;
let partitions: number[];
/** The accounts whose postponed events were continued with. */
let continued: UserId[];
beforeAll(async () => {
  fixture = await RoutingFixture.open();
  repository = new UnknownEventsRepository(fixture.database);
});
afterAll(() => fixture?.close());
beforeEach(async () => {
  await fixture.database.query('DELETE FROM unknown_event');
  await fixture.database.query('DELETE FROM postponed_event');
  [owner, partitions, continued, fixture.catalogResponds] = [newId('user'), [0, 1], [], true];
  unknown = new UnknownEvents(
    log,
    repository,
    fixture.directory,
    new MatchRepository(fixture.database, fixture.directory, log),
    { start: (id: UserId) => void continued.push(id) } as PostponedEvents,
    {
      isStopping: () => false,
      positionsOf: () => partitions.map((partition) => ({ partition, offset: 1_000_000, clock: 1_000_000 })),
    } as unknown as Consumers,
  );
});

interface Given {
  emitterId: EmitterId;
  offset: number;
  partition?: number;
  stream?: string;
}

function event({ emitterId, offset, partition = 0, stream = 'default' }: Given) {
  const message = {
    offset: String(offset),
    key: Buffer.from(emitterId),
    value: Buffer.from(`{"n":${offset}}`),
    headers: { ce_type: stream },
  };
  const record = new LogRecord('events', partition, message as unknown as KafkaMessage, 1000 + offset);
  return { event: { emitterId, stream, place: eventPlace(record) } as EmittedEvent, record };
}
const add = (...given: Given[]) => unknown.add(given.map(event));

async function stored(): Promise<string[]> {
  const { rows } = await fixture.database.query<{ value: Buffer }>('SELECT value FROM unknown_event ORDER BY ms, seq');
  return rows.map(({ value }) => value.toString());
}

/** The offsets of the account's postponed events. */
async function postponed(): Promise<number[]> {
  const everything = [0, 1].map((partition) => ({ partition, clock: 1_000_000, offset: 0 }));
  const records = await new PostponedEventsRepository(fixture.database).next(owner, everything, { except: [], limit: 2000, bytes: 1e9 });
  return records.map(({ offset }) => offset);
}

describe('an event of an unknown emitter that is in the database', () => {
  it('is postponed, with its record and in order, when the catalog has its emitter', async () => {
    const [source, workflow] = [newId('source'), newId('workflow')];
    for (const id of [source, workflow]) fixture.catalog.set(id, fixture.state(owner, id));
    await new PostponedEventsRepository(fixture.database).add([{ ownerId: owner, ...event({ emitterId: source, offset: 4 }) }]);
    await add({ emitterId: source, offset: 2 }, { emitterId: workflow, offset: 1 }, { emitterId: source, offset: 3, stream: 'x' });
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([[], [1, 2, 3, 4]]);
    const { rows } = await fixture.database.query('SELECT stream, headers, value::text FROM postponed_event WHERE ms = 1003');
    expect(rows).toEqual([{ stream: 'x', headers: '{"ce_type":"x"}', value: `\\x${Buffer.from('{"n":3}').toString('hex')}` }]);
    expect(new Set(continued)).toEqual(new Set([owner]));
    const counted = async () =>
      (await fixture.database.query('SELECT sum(rows)::int AS rows FROM waiting_entry WHERE holder = $1', [owner])).rows;
    expect(await counted()).toEqual([{ rows: 4 }]);
    const places = [1, 2, 3, 4].map((offset) => event({ emitterId: source, offset }).event.place);
    await new PostponedEventsRepository(fixture.database).remove(places);
    expect(await counted()).toEqual([{ rows: 0 }]);
  });

  it('is deleted and logged when the catalog does not have its emitter', async () => {
    const counted = jest.spyOn(MatchRepository.prototype, 'logUnknown');
    const [source, workflow] = [newId('source'), newId('workflow')];
    await add({ emitterId: source, offset: 1 }, { emitterId: workflow, offset: 2 }, { emitterId: source, offset: 3 });
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([[], []]);
    expect(counted.mock.calls.map(([{ emitterId }]) => emitterId)).toEqual([source, source, workflow]);
    counted.mockRestore();
  });

  it('waits while the catalog does not respond, unless the fact of its emitter arrives', async () => {
    const [source, known, removed] = [newId('source'), newId('source'), await fixture.workflow(owner)];
    await fixture.directory.learn(fixture.state(owner, removed, { active: false, deleted: true, version: 2 }));
    fixture.catalogResponds = false;
    await add({ emitterId: source, offset: 1 }, { emitterId: known, offset: 2 }, { emitterId: removed, offset: 3 });
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([['{"n":1}', '{"n":2}', '{"n":3}'], []]);
    await fixture.directory.learn(fixture.state(owner, known));
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([['{"n":1}', '{"n":3}'], [2]]);
    fixture.catalogResponds = true;
    await unknown.look();
    // whether it is after the end of the workflow is decided when it is continued with
    expect([await stored(), await postponed()]).toEqual([[], [2, 3]]);
  });

  it('is looked up by the process that has its partition', async () => {
    partitions = [1];
    const source = newId('source');
    fixture.catalog.set(source, fixture.state(owner, source));
    const others = { emitterId: newId('source'), offset: 1 };
    await add({ emitterId: source, offset: 2 }, { emitterId: source, offset: 3, partition: 1 }, others);
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([['{"n":1}', '{"n":2}'], [3]]);
    partitions = [0];
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([[], [2, 3]]);
  });

  it('moves between two batches of events, with many others of its emitter and of others', async () => {
    const source = newId('source');
    fixture.catalog.set(source, fixture.state(owner, source));
    const offsets = Array.from({ length: 1200 }, (_, n) => n);
    await add(
      ...offsets.flatMap((offset) => [
        { emitterId: source, offset },
        { emitterId: newId('source'), offset, partition: 1 },
      ]),
    );
    const planned = Promise.withResolvers<void>();
    const plan = unknown.whileNoneMoves(() => planned.promise);
    const look = unknown.look();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await postponed()).toEqual([]);
    planned.resolve();
    await Promise.all([plan, look]);
    expect([await stored(), await postponed()]).toEqual([[], offsets]);
  });

  it('is kept once, also if its record is read again, or is postponed already', async () => {
    const source = newId('source');
    await add({ emitterId: source, offset: 1 });
    await add({ emitterId: source, offset: 1 }, { emitterId: source, offset: 2 });
    expect(await stored()).toHaveLength(2);
    await new PostponedEventsRepository(fixture.database).add([{ ownerId: owner, ...event({ emitterId: source, offset: 2 }) }]);
    fixture.catalog.set(source, fixture.state(owner, source));
    await unknown.look();
    expect([await stored(), await postponed()]).toEqual([[], [1, 2]]);
  });

  it('is withdrawn if it is deleted', async () => {
    const [emitterId, other] = [newId('source'), newId('source')];
    await add(...[1, 2, 3].map((offset) => ({ emitterId, offset, stream: offset === 2 ? 'x' : 'default' })), {
      emitterId: other,
      offset: 4,
    });
    const { place } = event({ emitterId, offset: 3 }).event;
    const range = { kind: 'delete', emitterId, place, start: null, end: null, stream: 'default' } as const;
    expect(await repository.withdraw([range])).toBe(1);
    expect(await repository.withdraw([{ ...range, stream: null }])).toBe(1);
    expect(await stored()).toEqual(['{"n":3}', '{"n":4}']);
  });
});

it('the events of unknown emitters in the database have a limit, until they are settled', async () => {
  fixture.catalogResponds = false;
  const emitterId = newId('source');
  const huge = event({ emitterId, offset: 1 });
  Object.assign(huge.record, { bytes: 256 * 1024 * 1024 });
  expect(unknown.isFull).toBe(false);
  await unknown.add([huge]);
  expect(unknown.isFull).toBe(true);
  await expect(add({ emitterId, offset: 2 })).rejects.toThrow('too many events of unknown emitters');
  // its row is smaller
  await unknown.look();
  expect(unknown.isFull).toBe(false);
});

it('an index finds the events of unknown emitters', async () => {
  // with a few rows, the planner may prefer to sort them
  await fixture.database.query(
    `INSERT INTO unknown_event (ms, seq, emitter_id, stream, headers, value)
     SELECT n, 0, 'dc_' || n, 'default', '{}', 'x' FROM generate_series(1, 10000) AS n`,
  );
  await fixture.database.query('ANALYZE unknown_event');
  const explain = async (text: string) => {
    const { rows } = await fixture.database.query<{ 'QUERY PLAN': string }>(`EXPLAIN (GENERIC_PLAN) ${text}`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const texts: string[] = [];
  const query = async (statement: { text: string }) => {
    texts.push(statement.text);
    return { rows: [], rowCount: 0 };
  };
  const spied = new UnknownEventsRepository({ query } as never);
  await spied.next({ emitterId: 'dc_1', place: { ms: 1, seq: 1 } }, 'dd', [0], 10);
  await spied.postpone('dc_1', 'u_1', [0], 10);
  await spied.removeUnknown([{ emitterId: 'dc_1', place: { ms: 1, seq: 1 }, bytes: 1 }]);
  for (const text of texts) expect(await explain(text)).not.toMatch(/Seq Scan/);
  // in its order: a page does not read and sort all the others behind it
  expect(await explain(texts[0]!)).not.toMatch(/Sort/);
});
