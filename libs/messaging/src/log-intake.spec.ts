import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import { createLog } from '#observability';
import { Fenced, LogIntake } from './log-intake.js';
import type { Position } from './watermark.js';

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

const message = (offset: number, timestamp = offset, headers: IHeaders = {}): KafkaMessage => ({
  key: null,
  value: Buffer.from('x'),
  offset: String(offset),
  timestamp: String(timestamp),
  attributes: 0,
  headers,
});
const messages = (from: number, to: number): KafkaMessage[] => Array.from({ length: to - from }, (_, index) => message(from + index));

/** An intake of one partition whose position is stored in this object. */
class Store {
  position: Position = { offset: 0, clock: 0 };
  readonly handled: number[] = [];
  readonly clocks: number[] = [];
  readonly reread: number[] = [];
  paused: number[] = [];
  read = async () => new Map([[0, this.position]]);
  /** The outcome of the next batch. */
  readonly errors: Error[] = [];
  readonly intake = new LogIntake(
    createLog('test', 'silent'),
    {
      topic: 'events',
      positions: () => this.read(),
      handle: async (_partition, records, before, after) => {
        const error = this.errors.shift();
        if (error) throw error;
        if (before.offset !== this.position.offset) throw new Fenced();
        this.position = after;
        this.handled.push(...records.map(({ offset }) => offset));
        this.clocks.push(...records.map(({ clock }) => clock));
      },
    },
    { seek: (_partition, offset) => void this.reread.push(offset), pauseOnly: (partitions) => void (this.paused = partitions) },
  );

  async take(from: number, fetched: KafkaMessage[], highWatermark = 1000, logStart = 0): Promise<boolean> {
    const taken = this.intake.take({ partition: 0, messages: fetched, records: fetched, fetchedOffset: from, highWatermark, logStart });
    await settle();
    return taken;
  }

  /** Takes a fetch of which only the first records are visible. */
  async takeHidden(from: number, { records, visible }: { records: KafkaMessage[]; visible: number }): Promise<void> {
    const fetched = { partition: 0, messages: records.slice(0, visible), records, fetchedOffset: from, highWatermark: 1000, logStart: 0 };
    expect(this.intake.take(fetched)).toBe(true);
    await settle();
  }
}

/** An intake whose partitions have no stored positions. */
function intakeOf(handle: (partition: number, records: unknown[]) => Promise<void>) {
  const consumer = { paused: [] as number[], seek: () => {}, pauseOnly: (partitions: number[]) => void (consumer.paused = partitions) };
  const positions = async () => new Map<number, Position>();
  return { intake: new LogIntake(createLog('test', 'silent'), { topic: 'events', positions, handle }, consumer), consumer };
}

describe('a log intake', () => {
  it('resumes a partition at its stored position and takes no record twice', async () => {
    const store = new Store();
    store.position = { offset: 3, clock: 50 };
    await store.intake.assign([0]);
    expect(store.reread).toEqual([3]);
    await store.take(0, messages(0, 5));
    await store.take(3, messages(3, 7));
    expect(store.handled).toEqual([3, 4, 5, 6]);
    expect(store.position).toEqual({ offset: 7, clock: 50, timestamp: 6 });
  });

  it('keeps the clock monotonic', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.take(0, [message(0, 10), message(1, 30), message(2, 20)]);
    await store.take(3, [message(3, 25), message(4, 31)]);
    expect(store.clocks).toEqual([10, 30, 30, 30, 31]);
  });

  it('does not skip records that a fetch left out', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    expect(await store.take(5, messages(5, 7))).toBe(false);
    expect(store.reread).toEqual([0, 0]);
    await store.take(0, messages(0, 7));
    expect(store.handled).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('continues after records that retention has deleted', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    expect(await store.take(5, messages(5, 7), 1000, 5)).toBe(true);
    expect(store.handled).toEqual([5, 6]);
  });

  it('does not continue after records that the log still has, however often a fetch begins there', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    for (let n = 0; n < 3; n++) expect(await store.take(5, messages(5, 7))).toBe(false);
    expect(store.reread).toEqual([0, 0, 0, 0]);
    expect(store.handled).toEqual([]);
  });

  it('reads a partition that ends before its stored position from the beginning, with a new clock', async () => {
    const store = new Store();
    store.position = { offset: 500, clock: 9000 };
    await store.intake.assign([0]);
    await store.take(0, messages(0, 3), 3);
    // requested again: the fetch may have been older than the position
    await store.take(0, messages(0, 3), 3);
    await store.take(0, messages(0, 3), 3);
    expect(store.handled).toEqual([0, 1, 2]);
    expect(store.position).toEqual({ offset: 3, clock: 2, timestamp: 2 });
  });

  it('reads a partition that is empty below its stored position from the beginning', async () => {
    const store = new Store();
    store.position = { offset: 2, clock: 9000, timestamp: 9000 };
    await store.intake.assign([0]);
    store.intake.endsEarly(0, 2, 2);
    expect(store.reread).toEqual([1]);
    store.intake.endsEarly(0, 1, 2);
    expect(store.reread).toEqual([1, 0]);
    await store.take(0, messages(0, 1), 1);
    expect(store.handled).toEqual([0]);
    expect(store.position).toEqual({ offset: 1, clock: 0, timestamp: 0 });
  });

  it('reads another log from the beginning, with a new clock, even if it has outgrown the stored position', async () => {
    const store = new Store();
    store.position = { offset: 3, clock: 9000, timestamp: 9000 };
    await store.intake.assign([0]);
    expect(store.reread).toEqual([2]);
    expect(await store.take(2, messages(2, 6))).toBe(false);
    expect(store.reread).toEqual([2, 0]);
    await store.take(0, messages(0, 6));
    expect(store.handled).toEqual([0, 1, 2, 3, 4, 5]);
    expect(store.clocks).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it.each([true, false])(
    'reports lost records and another log unless its positions are those of another consumer: %p',
    async (ownGroup) => {
      const log = createLog('test', 'silent');
      const errors: unknown[] = [];
      log.error = (...[, name]: unknown[]) => void errors.push(name);
      const positions = async () => new Map([[0, { offset: 5, clock: 5, timestamp: 5 }]]);
      const intake = new LogIntake(
        log,
        { topic: 'events', ownGroup, positions, handle: async () => {} },
        { seek: () => {}, pauseOnly: () => {} },
      );
      await intake.assign([0]);
      // retention has deleted the records from 5 to 8
      intake.take({ partition: 0, messages: [message(8)], records: [message(8)], fetchedOffset: 8, highWatermark: 9, logStart: 8 });
      intake.endsEarly(0, 0, 5);
      expect(errors).toEqual(ownGroup ? [] : ['log.records-missed', 'log.replaced']);
    },
  );

  it('verifies the log again after a silence of the broker', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.take(0, messages(0, 3));
    store.intake.reverify();
    expect(store.reread).toEqual([0, 2]);
    expect(await store.take(2, [message(2, 7000), message(3, 8000)])).toBe(false);
    expect(store.reread).toEqual([0, 2, 0]);
    await store.take(0, [message(0, 5000), message(1, 6000), message(2, 7000), message(3, 8000)]);
    expect(store.handled).toEqual([0, 1, 2, 0, 1, 2, 3]);
  });

  it('handles what it has of the old log and the records of the new one in separate batches', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    store.errors.push(new Error('away'));
    await store.take(0, messages(0, 2));
    await store.take(0, [message(0, 70)], 1);
    await store.take(0, [message(0, 70)], 1);
    await store.take(0, [message(0, 70)], 1);
    while (store.handled.length < 3) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(store.handled).toEqual([0, 1, 0]);
    expect(store.position).toEqual({ offset: 1, clock: 70, timestamp: 70 });
  });

  it('forgets a clock from the future with the next record', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    const now = Date.now();
    await store.take(0, [message(0, now), message(1, Date.UTC(2100)), message(2, now + 1)]);
    await settle();
    expect(store.clocks).toEqual([now, Date.UTC(2100), now + 1]);
    expect(store.position).toEqual({ offset: 3, clock: now + 1, timestamp: now + 1 });
  });

  it('retries a batch until it succeeds', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    store.errors.push(new Error('away'), new Error('away'));
    await store.take(0, messages(0, 2));
    await store.take(2, messages(2, 4));
    while (store.handled.length < 4) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(store.handled).toEqual([0, 1, 2, 3]);
  });

  it('reports how many records are not handled, also while a batch fails, and since when', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.take(0, messages(0, 4), 10);
    expect([store.intake.lag, store.intake.oldestMs]).toEqual([6, 0]);
    store.errors.push(new Error('the database is down'));
    await store.take(4, messages(4, 10), 12);
    expect([store.intake.lag, store.intake.oldestMs]).toEqual([8, expect.any(Number)]);
    expect(store.intake.oldestMs).toBeGreaterThan(0);
    while (store.handled.length < 10) await new Promise((resolve) => setTimeout(resolve, 20));
    expect([store.intake.lag, store.intake.oldestMs]).toEqual([2, 0]);
    await store.intake.assign([]);
    expect(store.intake.lag).toBe(0);
  });

  it('reports since when a position cannot be read', async () => {
    const store = new Store();
    let fails = true;
    store.read = async () => {
      if (fails) throw new Error('the table is locked');
      return new Map();
    };
    const assigned = store.intake.assign([0]);
    await settle();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(store.intake.oldestMs).toBeGreaterThanOrEqual(19);
    fails = false;
    await assigned;
    expect(store.intake.oldestMs).toBe(0);
    fails = true;
    void store.intake.rewind();
    await settle();
    expect(store.intake.oldestMs).toBeGreaterThan(0);
    await store.intake.stop();
    expect(store.intake.oldestMs).toBe(0);
  });

  it('reports an outage as a warning, however often a batch fails, and another failure as an error at once', async () => {
    const log = createLog('test', 'silent');
    const lines: string[] = [];
    for (const level of ['warn', 'error'] as const) log[level] = (...[, name]: unknown[]) => void lines.push(`${level} ${String(name)}`);
    const [outage, bug] = [new Error('the database is down'), new Error('bug')];
    const errors = [...Array<Error>(20).fill(outage), bug];
    const failOr = async <T>(result: T): Promise<T> => {
      const error = errors.shift();
      if (error) throw error;
      return result;
    };
    const positions = () => failOr(new Map<number, Position>());
    const isTransient = (error: unknown) => error === outage;
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask'] });
    try {
      const intake = new LogIntake(
        log,
        { topic: 'events', positions, handle: () => failOr(undefined), isTransient },
        { seek: () => {}, pauseOnly: () => {} },
      );
      const assigned = intake.assign([0]);
      await jest.advanceTimersByTimeAsync(60_000);
      await assigned;
      expect(lines.splice(0)).toEqual([...Array<string>(20).fill('warn log.position-unknown'), 'error log.position-unknown']);
      errors.push(...Array<Error>(20).fill(outage), bug);
      const [record] = messages(0, 1);
      intake.take({ partition: 0, messages: [record!], records: [record!], fetchedOffset: 0, highWatermark: 1, logStart: 0 });
      await jest.advanceTimersByTimeAsync(60_000);
      expect(lines).toEqual([...Array<string>(20).fill('warn log.batch-failed'), 'error log.batch-failed']);
    } finally {
      jest.useRealTimers();
    }
  });

  it('pauses a partition that has 8 MiB of headers while a batch is handled, and handles 4 MiB at a time', async () => {
    const batches: number[] = [];
    const ends: (() => void)[] = [];
    const handle = (_: number, { length }: unknown[]) => {
      batches.push(length);
      return new Promise<void>((resolve) => ends.push(resolve));
    };
    const { intake, consumer } = intakeOf(handle);
    await intake.assign([0]);
    const headers = { ce_summary: Buffer.alloc(64 * 1024, 'x') };
    for (let offset = 0; !consumer.paused.includes(0) && offset < 200; offset++) {
      const one = [message(offset, offset, headers)];
      intake.take({ partition: 0, messages: one, records: one, fetchedOffset: offset, highWatermark: 1000, logStart: 0 });
    }
    expect(intake.next(0)).toBe(128);
    ends.shift()?.();
    await settle();
    expect(batches).toEqual([1, 63]);
  });

  describe('with many partitions', () => {
    const MIB = 1024 * 1024;
    const all = Array.from({ length: 64 }, (_, partition) => partition);
    let ends: Map<number, () => void>;
    let intake: LogIntake;
    let consumer: { paused: number[] };
    beforeEach(async () => {
      ends = new Map();
      ({ intake, consumer } = intakeOf((partition) => new Promise<void>((resolve) => ends.set(partition, resolve))));
      await intake.assign(all);
    });
    /** Fetches 1 MiB of the partition until it is paused. Returns the number of fetches. */
    const fill = (partition: number): number => {
      let taken = 0;
      for (; taken < 100 && !consumer.paused.includes(partition); taken++) {
        const offset = intake.next(partition)!;
        const one = [{ ...message(offset), value: Buffer.alloc(MIB) }];
        intake.take({ partition, messages: one, records: one, fetchedOffset: offset, highWatermark: 1000, logStart: 0 });
      }
      return taken;
    };

    it('takes 32 MiB of all of them together, and one fetch of each that has nothing waiting', () => {
      expect(all.slice(0, 8).map((partition) => fill(partition))).toEqual([8, 8, 8, 8, 1, 1, 1, 1]);
      expect(consumer.paused).toEqual(all.slice(0, 8));
    });

    it('takes the records of a fetch in progress when another partition has used up the limit', () => {
      expect(fill(0)).toBe(8);
      for (const partition of [1, 2, 3]) fill(partition);
      const one = [{ ...message(8), value: Buffer.alloc(MIB) }];
      const taken = intake.take({ partition: 0, messages: one, records: one, fetchedOffset: 8, highWatermark: 1000, logStart: 0 });
      expect([taken, intake.next(0)]).toEqual([true, 9]);
    });

    it('resumes a partition when the batch of another one has been handled', async () => {
      expect(all.slice(0, 5).map((partition) => fill(partition))).toEqual([8, 8, 8, 8, 1]);
      ends.get(0)?.();
      ends.get(1)?.();
      await settle();
      expect(consumer.paused).toEqual([2, 3]);
      expect(fill(4)).toBe(1);
    });

    it('does not count what a lost partition had', async () => {
      for (const partition of [0, 1, 2, 3]) fill(partition);
      await Promise.all([intake.assign(all), ...[0, 1, 2, 3].map(async (partition) => ends.get(partition)?.())]);
      expect([fill(5), fill(6)]).toEqual([8, 8]);
    });
  });

  it('reads a partition again when another process has advanced it', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    store.position = { offset: 2, clock: 2 };
    await store.take(0, messages(0, 4));
    expect(store.reread).toEqual([0, 2]);
    await store.take(2, messages(2, 4));
    expect(store.handled).toEqual([2, 3]);
  });

  it('reads its partitions again from the positions of a restored database', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.take(0, messages(0, 5));
    store.position = { offset: 3, clock: 2, timestamp: 2 };
    await store.intake.rewind();
    expect(store.reread).toEqual([0, 2]);
    await store.take(2, messages(2, 6));
    expect(store.handled).toEqual([0, 1, 2, 3, 4, 3, 4, 5]);
    await store.intake.stop();
    await store.intake.rewind();
    expect(store.intake.next(0)).toBeUndefined();
  });

  it('stores a position behind hidden records that follow the last one, and behind a fetch of hidden ones alone', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.takeHidden(0, { records: messages(0, 4), visible: 2 });
    expect(store.handled).toEqual([0, 1]);
    expect(store.position).toEqual({ offset: 4, clock: 1, timestamp: 3 });
    await store.takeHidden(4, { records: messages(4, 6), visible: 0 });
    expect(store.position).toEqual({ offset: 6, clock: 1, timestamp: 5 });
    // nothing identifies the log there
    await store.takeHidden(6, { records: [message(6, -1)], visible: 0 });
    expect(store.position).toEqual({ offset: 6, clock: 1, timestamp: 5 });
    await store.takeHidden(7, { records: messages(7, 8), visible: 1 });
    expect(store.handled).toEqual([0, 1, 7]);
    expect(store.position).toEqual({ offset: 8, clock: 7, timestamp: 7 });
    // retention has deleted what it has read: nothing is missed
    await store.intake.assign([]);
    await store.intake.assign([0]);
    expect(store.reread).toEqual([0, 7]);
  });

  it('shows by a record that another log begins, even if that one begins with hidden records', async () => {
    const store = new Store();
    store.position = { offset: 2, clock: 9000, timestamp: 9000 };
    await store.intake.assign([0]);
    store.intake.endsEarly(0, 1, 2);
    await store.takeHidden(0, { records: messages(0, 5), visible: 0 });
    expect(store.position).toEqual({ offset: 2, clock: 9000, timestamp: 9000 });
    await store.takeHidden(5, { records: messages(5, 7), visible: 1 });
    expect(store.handled).toEqual([5]);
    expect(store.position).toEqual({ offset: 7, clock: 5, timestamp: 6 });
  });

  it('takes nothing from a partition that it has lost', async () => {
    const store = new Store();
    await store.intake.assign([0]);
    await store.intake.assign([]);
    expect(await store.take(0, messages(0, 4))).toBe(false);
    expect(store.handled).toEqual([]);
  });
});
