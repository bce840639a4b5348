import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Socket } from 'node:net';
import type { Connection, PoolClient, Submittable } from 'pg';
import type { EmitterId } from '#contracts';
import { type EmittedEvent, type EventPlace, eventPlace } from '#events';
import { LOCK_NOT_AVAILABLE } from '#database';
import { Fenced } from '#messaging';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { AppendRepository } from './append.repository.js';
import { AppendService } from './append.service.js';
import { StreamCounter, TrimCounter } from './stream-counters.js';
import type { Operation } from './replay.js';

const PARTITION = 1;
const EMITTER: EmitterId = 'dc_1';

describe('the store', () => {
  let db: FreshDatabase;
  let repository: AppendRepository;
  let service: AppendService;
  let offset: number;

  beforeAll(async () => {
    db = await freshDatabase(schema);
  });
  afterAll(() => db.drop());
  beforeEach(async () => {
    await db.database.query('TRUNCATE event, event_progress, withdrawn_emit');
    repository = new AppendRepository(db.database);
    service = new AppendService(repository, new TrimCounter(), new StreamCounter(() => 0));
    await repository.positions([PARTITION]);
    offset = 0;
  });

  const place = (at: number): EventPlace => eventPlace({ clock: 1000 + at, offset: at, partition: PARTITION });
  const event = (emitId: string, more: Partial<EmittedEvent> = {}): EmittedEvent => ({
    kind: 'event',
    place: more.place ?? place(offset++),
    emitterId: EMITTER,
    stream: '',
    emitId,
    json: Buffer.from(JSON.stringify({ emitId })),
    hops: 0,
    ...more,
  });
  const events = (from: number, to: number): Operation[] => names(from, to).map((name) => event(name));
  const deletion = (range: { start?: EventPlace; end?: EventPlace; stream?: string } = {}): Operation => ({
    kind: 'delete',
    place: place(offset++),
    emitterId: EMITTER,
    start: range.start ?? null,
    end: range.end ?? null,
    stream: range.stream ?? null,
  });
  const append = (operations: Operation[]) => {
    const offsets = operations.map((operation) => Math.floor(operation.place.seq / 4096));
    const after = { offset: Math.max(...offsets) + 1, clock: 5000 };
    return service.append(PARTITION, operations, { offset: Math.min(...offsets), clock: 0 }, after);
  };
  /** The visible events: the newest 100, oldest first. */
  const kept = async (stream = '', emitter = EMITTER): Promise<string[]> => {
    const { rows } = await db.database.query<{ emit_id: string }>(
      'SELECT emit_id FROM event WHERE emitter_id = $1 AND stream = $2 ORDER BY ms DESC, seq DESC LIMIT 100',
      [emitter, stream],
    );
    return rows.map((row) => row.emit_id).reverse();
  };
  const withdrawn = async (): Promise<string[]> => {
    const { rows } = await db.database.query<{ emitter_id: string; emit_id: string }>('SELECT * FROM withdrawn_emit ORDER BY emit_id');
    expect(rows.every(({ emitter_id }) => emitter_id === EMITTER)).toBe(true);
    return rows.map(({ emit_id }) => emit_id);
  };
  const names = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, index) => `e${from + index}`);

  it('keeps the 1000 custom streams of an emitter that have the newest events, however many it names', async () => {
    const streams = async (emitter: EmitterId): Promise<string[]> => {
      const { rows } = await db.database.query<{ stream: string }>('SELECT DISTINCT stream FROM event WHERE emitter_id = $1', [emitter]);
      return rows.map(({ stream }) => stream);
    };
    await append([event('d'), event('e', { stream: '$errors' }), event('o', { emitterId: 'dc_2', stream: 's0' })]);
    const crowded: unknown[] = [];
    // the last batch is large enough to be replayed
    for (const [from, count] of [...Array.from({ length: 11 }, (_, n) => [n * 100, 100] as const), [1100, 400] as const])
      crowded.push((await append(Array.from({ length: count }, (_, n) => event(`s${from + n}`, { stream: `s${from + n}` })))).crowded);
    expect(crowded).toEqual([...Array<undefined>(11).fill(undefined), [EMITTER]]);
    const left = await streams(EMITTER);
    expect(left.filter((stream) => stream === '' || stream.startsWith('$')).sort()).toEqual(['', '$errors']);
    expect(new Set(left)).toEqual(new Set(['', '$errors', ...Array.from({ length: 1000 }, (_, n) => `s${500 + n}`)]));
    expect(await streams('dc_2')).toEqual(['s0']);
  });

  it.each([
    ['others', (batch: number) => batch],
    ['the same', () => 0],
  ])('keeps 1000 custom streams of an emitter that names more than that in each batch, and %s in the next one', async (_, round) => {
    for (let batch = 0; batch < 3; batch++)
      await append(Array.from({ length: 2600 }, (_, n) => event(`${batch}-${n}`, { stream: `s${round(batch)}-${n}` })));
    const { rows } = await db.database.query<{ count: number }>('SELECT count(DISTINCT stream)::int AS count FROM event');
    expect(rows[0]!.count).toBe(1000);
  });

  it('reads stored events only of streams whose new events depend on them, and of 200 at a time', async () => {
    const read = jest.spyOn(repository, 'kept');
    const many = (round: number) => Array.from({ length: 450 }, (_, n) => event(`${round}-${n}`, { stream: `s${n}` }));
    await append(many(0));
    expect(read).not.toHaveBeenCalled();
    await append([...many(1), event('0-7', { stream: 's7' }), ...many(2)]);
    expect(read.mock.calls.map(([, streams]) => streams)).toEqual([[{ emitterId: EMITTER, stream: 's7' }]]);
    read.mockClear();
    await append([...many(3), deletion({ stream: 's8' }), event('last', { stream: 's8' })]);
    expect(read.mock.calls.map(([, streams]) => streams.length)).toEqual([200, 200, 50]);
    expect([await kept('s7'), await kept('s8'), await kept('s449')]).toEqual([
      ['0-7', '1-7', '2-7', '3-7'],
      ['last'],
      ['0-449', '1-449', '2-449', '3-449'],
    ]);
  });

  it('stores small batches of several partitions together, and fails only for those whose position has moved', async () => {
    const partitions = [4, 2, 3, 5];
    await new AppendRepository(db.database).positions(partitions);
    await append([event('stored')]);
    const batch = (partition: number, emitId: string, before: number) => {
      const emitted = event(emitId, { place: eventPlace({ clock: 2000, offset: before, partition }), emitterId: `dc_${partition}` });
      return service.append(partition, [emitted], { offset: before, clock: 0 }, { offset: before + 1, clock: 2000 });
    };
    const transactions = async () =>
      (
        await db.database.query<{ count: number }>(
          'SELECT count(DISTINCT xmin::text)::int AS count FROM event_progress WHERE next_offset > 0',
        )
      ).rows[0]?.count;
    const before = (await transactions()) ?? 0;
    expect(await Promise.all(partitions.map((partition) => batch(partition, 'a', 0)))).toEqual(
      partitions.map(() => ({ stored: 1, repeated: 0 })),
    );
    expect(await transactions()).toBe(before + 1);
    const again = await Promise.allSettled([batch(4, 'a', 1), batch(2, 'b', 7), batch(3, 'c', 1)]);
    expect(again).toMatchObject([
      { value: { stored: 0, repeated: 1 } },
      { reason: expect.any(Fenced) },
      { value: { stored: 1, repeated: 0 } },
    ]);
    expect(await Promise.all(partitions.map((partition) => kept('', `dc_${partition}`)))).toEqual([['a'], ['a'], ['a', 'c'], ['a']]);
  });

  it('writes events once while a partition has repeats, and looks for repeats no more when it has had none for a while', async () => {
    await new AppendRepository(db.database).positions([2, 3]);
    const [added, looked] = [jest.spyOn(repository, 'add'), jest.spyOn(repository, 'repeatingStreams')];
    const inOther = (partition: number, n: number) => {
      const emitted = event(`${n}`, { place: eventPlace({ clock: 2000 + n, offset: n, partition }), emitterId: `dc_${partition}` });
      return service.append(partition, [emitted], { offset: n, clock: 0 }, { offset: n + 1, clock: 2000 });
    };
    await append([event('a')]);
    await append([event('a'), event('b')]);
    added.mockClear();
    for (let n = 0; n < 10; n++) await Promise.all([append([event('a'), event(`c${n}`)]), inOther(2, n), inOther(3, n)]);
    // the other partitions share a transaction
    expect(added).toHaveBeenCalledTimes(20);
    for (let n = 0; n < 50; n++) await append([event(`d${n}`)]);
    looked.mockClear();
    await append([event('last')]);
    expect(looked).not.toHaveBeenCalled();
    expect((await kept()).length).toBe(1 + 1 + 10 + 50 + 1);
  });

  it('stores batches with many bytes in separate transactions, of which four are open at a time', async () => {
    const partitions = [2, 3, 4, 5, 6, 7, 8, 9];
    await new AppendRepository(db.database).positions(partitions);
    let [open, most, all] = [0, 0, 0];
    const transaction = repository.transaction.bind(repository);
    jest.spyOn(repository, 'transaction').mockImplementation(async (work) => {
      most = Math.max(most, (open += 1));
      all += 1;
      return transaction(work).finally(() => (open -= 1));
    });
    const json = Buffer.from(JSON.stringify('x'.repeat(300_000)));
    const append = (partition: number) => {
      const emitted = event('a', { place: eventPlace({ clock: 2000, offset: 0, partition }), emitterId: `dc_${partition}`, json });
      return service.append(partition, [emitted], { offset: 0, clock: 0 }, { offset: 1, clock: 2000 });
    };
    expect(await Promise.all(partitions.map(append))).toMatchObject(partitions.map(() => ({ stored: 1 })));
    expect([all, most]).toEqual([8, 4]);
  });

  it('stores the batches of other partitions while a frozen process has locked one', async () => {
    const partitions = [2, 3, 4];
    await new AppendRepository(db.database).positions(partitions);
    const batch = (partition: number, offset: number) => {
      const emitted = event(`e${offset}`, { place: eventPlace({ clock: 2000, offset, partition }), emitterId: `dc_${partition}` });
      return service.append(partition, [emitted], { offset, clock: 0 }, { offset: offset + 1, clock: 2000 });
    };
    const frozen = await db.database.connect();
    await frozen.query('BEGIN');
    await frozen.query('UPDATE event_progress SET last_ms = 1 WHERE partition = 2');
    expect(await Promise.allSettled(partitions.map((partition) => batch(partition, 0)))).toMatchObject([
      { reason: { code: LOCK_NOT_AVAILABLE } },
      { value: { stored: 1 } },
      { value: { stored: 1 } },
    ]);
    // the locked partition is retried without the others
    const [retried, others] = [batch(2, 0).catch((error: unknown) => error), Promise.all([batch(3, 1), batch(4, 1)])];
    expect(await Promise.race([retried, others])).toEqual([expect.anything(), expect.anything()]);
    expect(await retried).toMatchObject({ code: LOCK_NOT_AVAILABLE });
    await frozen.query('ROLLBACK');
    frozen.release();
    expect(await Promise.all([batch(2, 0), batch(3, 2)])).toMatchObject([{ stored: 1 }, { stored: 1 }]);
  });

  /** Begins a COPY whose data it does not send. */
  const sendNothing = (client: PoolClient) => {
    const stalled = {
      submit: (connection: Connection) => connection.query('COPY event (emitter_id) FROM STDIN'),
      handleCopyInResponse() {},
      handleError() {},
    };
    client.query(stalled as unknown as Submittable);
  };
  /** Begins to read a result of 100 MB, and does not continue. */
  const readNothing = (client: PoolClient) => {
    client.query(`SELECT repeat('x', 1000) FROM generate_series(1, 100000)`).catch(() => {});
    streamOf(client).pause();
  };
  const streamOf = (client: PoolClient) => (client as unknown as { connection: { stream: Socket } }).connection.stream;

  it.each([
    ['in the middle of COPY', sendNothing, 'ClientRead'],
    ['while it reads a result', readNothing, 'ClientWrite'],
  ])('ends the session of a process that was frozen %s, and of no other', async (_, freeze, waitEvent) => {
    const repository = new AppendRepository(db.database);
    const [frozen, slow] = [await db.database.connect(), await db.database.connect()];
    const ended = new Promise((resolve) => frozen.on('error', resolve));
    await frozen.query('BEGIN');
    await frozen.query('UPDATE event_progress SET last_ms = 1 WHERE partition = $1', [PARTITION]);
    freeze(frozen);
    // such as a backup
    readNothing(slow);
    const waiting = (event: string) =>
      db.database.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND wait_event = $1`, [
        event,
      ]);
    while ((await waiting(waitEvent)).rowCount === 0 || (await waiting('ClientWrite')).rowCount !== (waitEvent === 'ClientWrite' ? 2 : 1))
      await new Promise((resolve) => setTimeout(resolve, 20));
    const endFrozen = jest.spyOn(AppendRepository.prototype, 'endFrozen');
    await expect(append([event('a')])).rejects.toMatchObject({ code: LOCK_NOT_AVAILABLE });
    expect(await Promise.all(endFrozen.mock.results.map(({ value }) => value))).toEqual([0]);
    endFrozen.mockRestore();
    expect(await repository.endFrozen(0)).toBe(1);
    streamOf(frozen).resume();
    await ended;
    offset = 0;
    await append([event('a')]);
    expect(await kept()).toEqual(['a']);
    streamOf(slow).destroy();
    slow.release(true);
    frozen.release(true);
  });

  it('stores an event byte for byte, with the attributes of its emitter', async () => {
    const json = Buffer.from(' {"text": "€ \\u0041", "big": 12345678901234567890} ');
    await append([event('a', { json, stream: '$logs', summary: 'Grüße', itemId: '7', itemTs: -1_700_000_000_123 }), event('b')]);
    const { rows } = await db.database.query('SELECT * FROM event ORDER BY ms');
    expect(rows).toEqual([
      {
        ...place(0),
        emitter_id: EMITTER,
        stream: '$logs',
        emit_id: 'a',
        event: json,
        truncated: null,
        summary: 'Grüße',
        item_id: '7',
        item_ts: -1_700_000_000_123,
      },
      {
        ...place(1),
        emitter_id: EMITTER,
        stream: '',
        emit_id: 'b',
        event: Buffer.from('{"emitId":"b"}'),
        truncated: null,
        summary: null,
        item_id: null,
        item_ts: null,
      },
    ]);
  });

  it('stores the truncated form of a large event in addition to it', async () => {
    const json = Buffer.from(JSON.stringify({ a: 1, long: 'x'.repeat(1_000_000) }));
    await append([event('a', { json })]);
    const { rows } = await db.database.query<{ event: Buffer; truncated: Buffer }>('SELECT event, truncated FROM event');
    expect(rows[0]?.event.equals(json)).toBe(true);
    expect(rows[0]?.truncated.toString()).toBe('{"a":1,"$truncated":true}');
  });

  it('keeps the last 100 of each stream, and not many more', async () => {
    for (let from = 1; from <= 1000; from += 50) await append(events(from, from + 49));
    await append([event('other', { stream: 'other' })]);
    expect(await kept()).toEqual(names(901, 1000));
    expect(await kept('other')).toEqual(['other']);
    const { rows } = await db.database.query<{ count: number }>('SELECT count(*) FROM event');
    expect(rows[0]?.count).toBeLessThan(260);
  });

  it('keeps the last 100 of a flood', async () => {
    await append(events(1, 60));
    await append(events(61, 2000));
    expect(await kept()).toEqual(names(1901, 2000));
  });

  it('keeps an emit once, in one batch and over several', async () => {
    await append([event('a'), event('b'), event('a')]);
    expect(await append([event('c'), event('a'), event('b')])).toEqual({ stored: 1, repeated: 2 });
    expect(await kept()).toEqual(['a', 'b', 'c']);
  });

  it('keeps one emit id on two streams and of two emitters', async () => {
    await append([event('a'), event('a', { stream: 'x' }), event('a', { emitterId: 'dc_2' })]);
    expect([await kept(), await kept('x'), await kept('', 'dc_2')]).toEqual([['a'], ['a'], ['a']]);
  });

  it('keeps an emit again once it is beyond the last 100', async () => {
    await append(events(1, 150));
    await append([event('e50'), event('e60')]);
    expect(await kept()).toEqual([...names(52, 150), 'e50']);
  });

  it('deletes what the log held before, in the batch and in the table, and nothing after', async () => {
    await append(events(1, 3));
    await append([...events(4, 5), deletion(), ...events(6, 7)]);
    expect(await kept()).toEqual(['e6', 'e7']);
  });

  it.each([
    ['from', 3, undefined, ['e1', 'e2']],
    ['up to', undefined, 3, ['e4', 'e5']],
    ['between', 2, 4, ['e1', 'e5']],
    ['exactly one', 3, 3, ['e1', 'e2', 'e4', 'e5']],
    ['none', 7, 9, ['e1', 'e2', 'e3', 'e4', 'e5']],
  ])('deletes a range: %s', async (_, start, end, rest) => {
    for (const sizes of [[5], [2, 3], [5, 0]]) {
      await db.database.query('TRUNCATE event');
      const before = offset - 1;
      const at = (number: number | undefined) => (number === undefined ? undefined : place(before + number));
      const batches = sizes.map((size, index) => (index === 0 ? events(1, size) : events((sizes[0] ?? 0) + 1, 5)));
      batches.at(-1)?.push(deletion({ start: at(start), end: at(end) }));
      for (const batch of batches) await append(batch);
      expect(await kept()).toEqual(rest);
    }
  });

  it('deletes from every stream, or from the one that is named', async () => {
    const streams = ['', '$errors', '$in', 'x'];
    const all = async () => Promise.all(streams.map((stream) => kept(stream)));
    await append(streams.map((stream) => event(`a${stream}`, { stream })));
    await append([event('b'), deletion({ stream: 'x' })]);
    expect(await all()).toEqual([['a', 'b'], ['a$errors'], ['a$in'], []]);
    await append([deletion({ stream: '' }), event('c', { stream: 'x' })]);
    expect(await all()).toEqual([[], ['a$errors'], ['a$in'], ['c']]);
    await append([event('d'), deletion()]);
    expect(await all()).toEqual([[], [], [], []]);
  });

  it('does not bring back with a deletion what was beyond the last 100', async () => {
    for (const stream of ['', 'x'])
      for (let from = 1; from <= 140; from += 20) await append(events(from, from + 19).map((each) => ({ ...each, stream })));
    await append([deletion({ start: place(offset - 10) })]);
    expect(await kept('x')).toEqual(names(41, 130));
    expect(await kept('')).toEqual(names(41, 140));
    await append([event('last'), deletion({ stream: '', start: place(offset - 1) })]);
    expect(await kept('')).toEqual(names(42, 140));
  });

  it('deletes any number of ranges of an emitter in a batch with two statements', async () => {
    for (const stream of ['', '$in', '$errors', 'x', 'y']) await append(events(1, 90).map((each) => ({ ...each, stream })));
    const statements: unknown[] = [];
    const repository = new AppendRepository(db.database);
    const transaction = repository.transaction.bind(repository);
    jest.spyOn(repository, 'transaction').mockImplementation((work) =>
      transaction((session) => {
        const query = jest.spyOn(session, 'query');
        return work(session).finally(() =>
          statements.push(...query.mock.calls.map(([statement]) => (statement as { name?: string }).name)),
        );
      }),
    );
    service = new AppendService(repository, new TrimCounter(), new StreamCounter());
    // each stream has the places of its batch: the n-th event of the k-th stream is at 90 k + n - 1
    const one = (at: number, stream?: string) => deletion({ start: place(at), end: place(at), stream });
    const reversed = deletion({ start: place(9), end: place(5) });
    await append([
      ...Array.from({ length: 30 }, (_, n) => one(10 * n)),
      one(1, '*'),
      one(91, '*'),
      one(272, 'x'),
      one(273, 'x'),
      one(274, 'y'),
      reversed,
    ]);
    expect(statements.filter((name) => String(name).startsWith('event-remove'))).toEqual(['event-remove-of-many', 'event-remove-of-named']);
    const tenths = names(1, 90).filter((_, index) => index % 10 === 0);
    const deletedOf = new Map([
      ['', [...tenths, 'e2']],
      ['$in', tenths],
      ['$errors', tenths],
      ['x', ['e1', 'e11', 'e21', 'e3', 'e4']],
      ['y', []],
    ]);
    for (const [stream, gone] of deletedOf)
      expect([stream, await kept(stream)]).toEqual([stream, names(1, 90).filter((name) => !gone.includes(name))]);
    expect(await withdrawn()).toEqual(tenths.toSorted());
  });

  it('takes an event from $in when it comes due, and no other', async () => {
    await append([event('a', { stream: '$in', dueAt: 5 }), event('b', { stream: '$in', dueAt: 6 })]);
    await append([event('a', { stream: 'x', waited: true }), event('b')]);
    expect([await kept('$in'), await kept('x'), await kept()]).toEqual([['b'], ['a'], ['b']]);
  });

  describe('withdraws', () => {
    const waiting = (from: number, to: number): Operation[] => names(from, to).map((name) => event(name, { stream: '$in', dueAt: 5 }));

    it('emits that are deleted from $in are withdrawn, and nothing of other streams or emitters', async () => {
      await append([...waiting(1, 3), event('a'), event('e9', { stream: '$in', emitterId: 'dc_2' })]);
      await append([deletion({ stream: '$in', end: place(1) })]);
      expect([await withdrawn(), await kept('$in')]).toEqual([['e1', 'e2'], ['e3']]);
      await append([deletion()]);
      expect([await withdrawn(), await kept('$in')]).toEqual([['e1', 'e2', 'e3'], []]);
      await append([deletion({ stream: '$in' })]);
      expect(await withdrawn()).toEqual(['e1', 'e2', 'e3']);
    });

    it('an emit that came and was deleted in one batch is withdrawn', async () => {
      await append([...waiting(1, 2), deletion({ stream: '$in', start: place(1) }), ...waiting(3, 3)]);
      expect([await withdrawn(), await kept('$in')]).toEqual([['e2'], ['e1', 'e3']]);
    });

    it('nothing that came due, was trimmed, or was deleted elsewhere', async () => {
      await append([...waiting(1, 2)]);
      await append([event('e1', { stream: 'x', waited: true }), deletion({ stream: 'x' }), deletion({ stream: '' })]);
      for (let from = 3; from <= 150; from += 37) await append(waiting(from, from + 36));
      await append([deletion({ stream: '$in', end: place(offset - 100) })]);
      expect(await withdrawn()).toEqual(['e51']);
    });
  });

  it('lets one owner of a partition move on: another one changes nothing', async () => {
    const [first, second] = [[event('a')], [event('b')]];
    await append(first);
    await expect(service.append(PARTITION, second, { offset: 0, clock: 0 }, { offset: 2, clock: 0 })).rejects.toThrow(Fenced);
    expect(await kept()).toEqual(['a']);
  });

  it('moves events of the future back before the next event, in their order, once the clock is right again', async () => {
    const [now, future] = [Date.now(), Date.UTC(2100)];
    const at = (ms: number, offset: number) => ({ place: { ms, seq: offset * 4096 + PARTITION } });
    const old = [event('a', at(now - 5, 0)), event('b', at(now, 1)), event('x', { ...at(now, 2), stream: 'x' })];
    const late = [event('c', at(future, 3)), event('d', at(future, 4)), event('e', { ...at(future, 5), emitterId: 'dc_2' })];
    await service.append(PARTITION, [...old, ...late], { offset: 0, clock: 0 }, { offset: 6, clock: future });
    await service.append(PARTITION, [event('f', at(now + 10, 6))], { offset: 6, clock: future }, { offset: 7, clock: now + 10 });
    const { rows } = await db.database.query<{ emit_id: string; ms: number }>(
      'SELECT emit_id, ms FROM event ORDER BY emitter_id, stream, ms, seq',
    );
    expect(rows).toEqual([
      { emit_id: 'a', ms: now - 5 },
      { emit_id: 'b', ms: now },
      { emit_id: 'c', ms: now + 8 },
      { emit_id: 'd', ms: now + 9 },
      { emit_id: 'f', ms: now + 10 },
      { emit_id: 'x', ms: now },
      { emit_id: 'e', ms: now + 9 },
    ]);
  });

  it('shows the next event of a stream that was quiet for the last five minutes of a clock that was ten minutes ahead', async () => {
    const [now, minute] = [Date.now(), 60_000];
    const at = (ms: number, offset: number) => ({ place: { ms, seq: offset * 4096 + PARTITION } });
    const early = Array.from({ length: 100 }, (_, n) => event(`a${n}`, at(now + 2 * minute + n, n)));
    const late = event('b', { ...at(now + 10 * minute, 100), emitterId: 'dc_2' });
    await service.append(PARTITION, [...early, late], { offset: 0, clock: 0 }, { offset: 101, clock: now + 10 * minute });
    await service.append(PARTITION, [event('c', at(now, 101))], { offset: 101, clock: now + 10 * minute }, { offset: 102, clock: now });
    expect((await kept()).at(-1)).toBe('c');
  });

  it('stores another log from its beginning, and its events are the newest', async () => {
    const now = Date.now();
    const at = (ms: number, offset: number) => ({ place: { ms, seq: offset * 4096 + PARTITION } });
    const position = { offset: 500, clock: now, timestamp: now };
    await service.append(PARTITION, [event('a', at(now, 499))], { offset: 0, clock: 0 }, position);
    await service.append(PARTITION, [event('b', at(now, 0))], position, { offset: 1, clock: now, timestamp: now + 1 });
    expect(await kept()).toEqual(['a', 'b']);
    // the offset is the same, the log is not
    const stale = { offset: 1, clock: now, timestamp: now };
    await expect(service.append(PARTITION, [], stale, { offset: 2, clock: now })).rejects.toThrow(Fenced);
  });

  it('begins a partition at its beginning and continues where it stopped', async () => {
    const repository = new AppendRepository(db.database);
    expect(await repository.positions([0])).toEqual(new Map([[0, { offset: 0, clock: 0 }]]));
    await append(events(1, 2));
    expect(await repository.positions([0, PARTITION])).toEqual(
      new Map([
        [0, { offset: 0, clock: 0 }],
        [PARTITION, { offset: 2, clock: 5000 }],
      ]),
    );
  });
});
