import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { KafkaMessage } from 'kafkajs';
import { LaneIntake, type Uncommitted } from './lane-intake.js';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';
import type { Progress } from './watermark.js';

const TOPIC = 'events';
const PARTITIONS = 2;
const RECORDS = 30;
const KEYS = 3;

/** The next step; the numbers choose one of the options of the moment. */
type Step =
  | { do: 'fetch' | 'finish' | 'commit' | 'tell' | 'crash'; pick: number }
  /** The group is about to reassign the partitions. */
  | { do: 'rebalancing' }
  /** It does. `absent`: a process that was too slow to respond and does not notice. */
  | { do: 'rebalance'; owners: number[]; absent: number };

const pick = fc.nat(1000);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('fetch' as const), pick }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('finish' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('commit' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('tell' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rebalancing' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('rebalance' as const),
      owners: fc.array(fc.nat(1), { minLength: PARTITIONS, maxLength: PARTITIONS }),
      absent: fc.nat(3),
    }),
  },
);

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The topic: the records of each partition, with a clock that sometimes steps back. */
const log: KafkaMessage[][] = Array.from({ length: PARTITIONS }, (_, partition) =>
  Array.from({ length: RECORDS }, (_, offset) => ({
    key: Buffer.from(`key-${partition}-${offset % KEYS}`),
    value: Buffer.from(String(offset)),
    offset: String(offset),
    timestamp: String(1000 + offset * 10 - (offset % 7 >= 3 ? 60 : 0)),
    attributes: 0,
    headers: {},
  })),
);

/** Markers of transactions, which consumers do not get; the last record is one. */
const isHidden = (offset: number): boolean => offset % 10 === 9;

interface Effect {
  partition: number;
  offset: number;
  key: string;
  clock: number;
  /** When it began, its process knew that it was done, that its partition belonged to another process, or that it might soon. */
  needless: boolean;
}

/** Some records have two tasks. */
const lanesOf = (offset: number): string[] => (offset % 4 === 0 ? ['one', 'two'] : ['one']);

/** A process of the group: an intake, its fetch positions, and tasks that wait to be released. */
class Process {
  alive = true;
  readonly fetched = new Map<number, number>();
  readonly pending: (() => void)[] = [];
  /** The partitions of the process, and their committed progress, once it has read it. */
  given = new Map<number, Progress | undefined>();
  rebalancing = false;
  /** The generation of the group when this process last took part in an assignment. */
  generation = 0;
  /** Delivers the committed progress, once. */
  tell: (() => void) | undefined;
  readonly intake: LaneIntake;
  private plans = 0;

  constructor(effects: Effect[]) {
    this.intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 12,
      maxOutstandingBytes: 20,
      // some calls plan the first records only
      plan: (records) =>
        records
          .slice(0, this.plans++ % 3 === 0 ? 2 : Infinity)
          .map((record) => lanesOf(record.offset).map((name) => this.task(record, `${record.key} ${name}`, effects))),
    });
  }

  private task(record: LogRecord, lane: string, effects: Effect[]): Task {
    return { lane, run: () => this.run(record, lane, effects) };
  }

  private async run({ partition, offset, clock }: LogRecord, key: string, effects: Effect[]): Promise<void> {
    const known = this.given.get(partition);
    const needless = !this.given.has(partition) || this.rebalancing || (known !== undefined && knows(known, offset));
    await new Promise<void>((resolve) => this.pending.push(resolve));
    // a dead process does nothing
    if (!this.alive) return new Promise(() => {});
    effects.push({ partition, offset, key, clock, needless });
  }
}

const knows = ({ offset: low, ended }: Progress, offset: number): boolean =>
  offset < low || ended.some(({ from, to }) => offset >= from && offset < to);

type Committing = (intake: LaneIntake, fetched: Map<number, number>) => Uncommitted[];
type Told = (progress: Progress) => Progress;

/** Plays the steps, then lets everything finish, and returns the effects in the order in which they happened. */
async function play(steps: Step[], uncommitted: Committing, told: Told = (progress) => progress): Promise<Effect[]> {
  const effects: Effect[] = [];
  const committed: Progress[] = Array.from({ length: PARTITIONS }, () => ({ offset: 0, clock: 0, ended: [] }));
  const processes = [new Process(effects), new Process(effects)];
  let owners = [0, 1];
  let generation = 0;

  const assign = (absent?: number) => {
    generation += 1;
    processes.forEach((process, index) => {
      if (index === absent) return;
      process.generation = generation;
      const mine = owners.flatMap((owner, partition) => (owner === index ? [partition] : []));
      process.given = new Map(mine.map((partition) => [partition, undefined]));
      process.intake.keepOnly(mine.map((partition) => ({ topic: TOPIC, partition })));
      process.fetched.clear();
      process.tell = () => {
        process.tell = undefined;
        process.rebalancing = false;
        process.given = new Map(mine.map((partition) => [partition, committed[partition]!]));
        process.intake.assign(mine.map((partition) => ({ topic: TOPIC, partition, ...told(committed[partition]!) })));
        process.intake.resume();
        // like kafkajs: every assigned partition is read again from its committed offset
        for (const partition of mine) process.fetched.set(partition, committed[partition]!.offset);
      };
    });
  };
  const commit = (process: Process) => {
    for (const progress of uncommitted(process.intake, process.fetched)) {
      const { partition, offset, clock, ended } = progress;
      // Kafka rejects the commit of another generation; within one, a member commits only its own partitions
      if (process.generation !== generation || !process.given.has(partition)) continue;
      const before = committed[partition]!;
      for (let n = 0; n < RECORDS; n++) if (knows(before, n)) expect(knows(progress, n)).toBe(true);
      committed[partition] = { offset, clock, ended };
      progress.done();
    }
  };
  const fetch = async (process: Process, partition: number) => {
    if (!process.intake.hasCapacity) return;
    const from = process.fetched.get(partition) ?? 0;
    const messages = log[partition]!.slice(from, from + 5);
    const visible = messages.filter(({ offset }) => !isHidden(Number(offset)));
    if (!(await process.intake.take(TOPIC, partition, visible))) return;
    process.intake.skipHidden(TOPIC, partition, { records: messages, fetchedOffset: from, highWatermark: RECORDS, logStart: 0 });
    process.fetched.set(partition, from + messages.length);
  };
  const finish = async (process: Process, n: number) => {
    const [release] = process.pending.splice(n % process.pending.length, 1);
    release?.();
    await settle();
  };

  assign();
  for (const each of steps) {
    if (each.do === 'rebalance') {
      owners = each.owners;
      assign(each.absent);
      continue;
    }
    if (each.do === 'rebalancing') {
      for (const process of processes) {
        process.intake.suspend();
        process.rebalancing = true;
      }
      continue;
    }
    const index = each.pick % 2;
    const process = processes[index]!;
    if (each.do === 'fetch') {
      const mine = [...process.fetched.keys()];
      if (mine.length > 0) await fetch(process, mine[each.pick % mine.length]!);
    } else if (each.do === 'finish') {
      if (process.pending.length > 0) await finish(process, each.pick);
    } else if (each.do === 'commit') {
      commit(process);
    } else if (each.do === 'tell') {
      process.tell?.();
    } else {
      process.alive = false;
      processes[index] = new Process(effects);
      assign();
    }
  }
  assign();
  for (let rounds = 0; rounds < 1000; rounds++) {
    for (const process of processes) {
      process.tell?.();
      for (const partition of process.fetched.keys()) await fetch(process, partition);
      while (process.pending.length > 0) await finish(process, 0);
      await settle();
      commit(process);
    }
    if (committed.every(({ offset }) => offset === RECORDS)) break;
  }
  // behind the hidden record at the end, too: no consumer lag is left
  if (uncommitted === real) expect(committed.map(({ offset }) => offset)).toEqual(committed.map(() => RECORDS));
  return effects;
}

const real: Committing = (intake) => intake.uncommitted();

/** Throws if a guarantee is violated. */
function check(effects: Effect[]): void {
  const clocks = log.map((records) =>
    records.reduce<number[]>(
      (folded, { timestamp }, offset) => [...folded, Math.max(folded.at(-1) ?? 0, isHidden(offset) ? 0 : Number(timestamp))],
      [],
    ),
  );
  const first = new Map<string, number[]>();
  for (const { partition, offset, key, clock, needless } of effects) {
    expect(needless).toBe(false);
    const seen = first.get(key) ?? [];
    if (!seen.includes(offset)) first.set(key, [...seen, offset]);
    expect(clock).toBe(clocks[partition]![offset]);
  }
  for (let partition = 0; partition < PARTITIONS; partition++) {
    for (let k = 0; k < KEYS; k++) {
      // each task of each record at least once, and first effects in the order of the topic
      for (const lane of ['one', 'two'])
        expect(first.get(`key-${partition}-${k} ${lane}`)).toEqual(
          Array.from({ length: RECORDS }, (_, offset) => offset).filter(
            (offset) => offset % KEYS === k && lanesOf(offset).includes(lane) && !isHidden(offset),
          ),
        );
    }
  }
}

const breaks = async (uncommitted: Committing, told?: Told): Promise<boolean> => {
  const result = await fc.check(
    fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), async (steps) => check(await play(steps, uncommitted, told))),
    { numRuns: 300, endOnFailure: true, seed: 1 },
  );
  return result.failed;
};

describe('keyed lanes with a low watermark', () => {
  it('lose nothing, do not repeat committed work, and keep the order of each key and the clock through crashes and rebalances', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 150, size: 'max' }), async (steps) => check(await play(steps, real))),
      { numRuns: 300 },
    );
  });

  it('would lose records if the fetch position were committed', async () => {
    const fetchedPosition: Committing = (_intake, fetched) =>
      [...fetched].map(([partition, offset]) => ({ topic: TOPIC, partition, offset, clock: 0, ended: [], done: () => {} }));
    expect(await breaks(fetchedPosition)).toBe(true);
  });

  it('would lose records if unfinished work were committed as done', async () => {
    const upToFetched: Committing = (intake, fetched) =>
      intake.uncommitted().map((each) => ({ ...each, ended: [{ from: each.offset, to: fetched.get(each.partition) ?? 0 }] }));
    expect(await breaks(upToFetched)).toBe(true);
  });

  it('would repeat finished work if a process read only the low watermark', async () => {
    expect(await breaks(real, (progress) => ({ ...progress, ended: [] }))).toBe(true);
  });

  it('would lose the clock if it were not committed with the position', async () => {
    expect(await breaks((intake) => intake.uncommitted().map((position) => ({ ...position, clock: 0 })))).toBe(true);
  });
});

describe('a lane intake whose database was restored', () => {
  it('plans the records above the position of the database again, and drops the tasks that wait', async () => {
    const ran: number[] = [];
    const pending: (() => void)[] = [];
    const intake = new LaneIntake({
      concurrency: 1,
      maxOutstanding: 100,
      plan: (records) =>
        records.map(({ offset }) => [
          {
            lane: 'one',
            run: async () => {
              ran.push(offset);
              await new Promise<void>((resolve) => pending.push(resolve));
            },
          },
        ]),
    });
    const finish = async () => {
      pending.shift()?.();
      await settle();
    };
    const messages = log[0]!.slice(0, 4);
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, ended: [] }]);
    await intake.take(TOPIC, 0, messages);
    await settle();
    await finish();
    await finish();
    expect(ran).toEqual([0, 1, 2]);
    expect(intake.rewind({ topic: TOPIC, partition: 1, offset: 1, clock: 0 })).toBe(false);
    expect(intake.rewind({ topic: TOPIC, partition: 0, offset: 1, clock: 1000, timestamp: 1000 })).toBe(true);
    expect(intake.check(TOPIC, 0, { records: messages, fetchedOffset: 0, highWatermark: 4, logStart: 0 })).toEqual({
      kind: 'continues',
      missed: 0,
    });
    await intake.take(TOPIC, 0, messages);
    for (let n = 0; n < 6; n++) await finish();
    expect(ran).toEqual([0, 1, 2, 1, 2, 3]);
    expect(intake.uncommitted()).toMatchObject([{ offset: 4 }]);
  });

  it('runs a task of a partition in its lane, as long as the partition is its own', async () => {
    const intake = new LaneIntake({ concurrency: 10, maxOutstanding: 100, plan: (records) => records.map(() => []) });
    const [begun, dropped]: string[][] = [[], []];
    const task = (name: string): Task => ({
      lane: 'one',
      run: async () => void begun!.push(name),
      drop: () => void dropped!.push(name),
    });
    const at = { topic: TOPIC, partition: 0 };
    const assign = (offset: number) => intake.assign([{ ...at, offset, clock: 7000, timestamp: 7000, ended: [] }]);
    expect(await intake.pushFor(TOPIC, 0, task('too early'))).toBe(false);
    intake.keepOnly([at]);
    assign(3);
    expect(await intake.pushFor(TOPIC, 0, task('first'))).toBe(true);
    intake.suspend();
    const kept = intake.pushFor(TOPIC, 0, task('kept'));
    await settle();
    expect(begun).toEqual(['first']);
    intake.resume();
    expect(await kept).toBe(true);
    intake.suspend();
    const lost = intake.pushFor(TOPIC, 0, task('lost'));
    // another process has advanced the partition meanwhile
    intake.keepOnly([]);
    intake.keepOnly([at]);
    assign(9);
    intake.resume();
    expect(await lost).toBe(false);
    expect([begun, dropped]).toEqual([
      ['first', 'kept'],
      ['too early', 'lost'],
    ]);
    intake.close();
    expect(await intake.pushFor(TOPIC, 0, task('too late'))).toBe(false);
    expect(begun).not.toContain('too late');
  });

  it('reads another log from its beginning, and moves the position of the group back', async () => {
    const intake = new LaneIntake({ concurrency: 1, maxOutstanding: 100, plan: (records) => records.map(() => []) });
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 3, clock: 7000, timestamp: 7000, ended: [{ from: 4, to: 5 }] }]);
    const messages = log[0]!.slice(2, 6);
    expect(intake.check(TOPIC, 0, { records: messages, fetchedOffset: 2, highWatermark: 6, logStart: 0 })).toEqual({ kind: 'replaced' });
    await intake.take(TOPIC, 0, log[0]!.slice(0, 6));
    expect(intake.uncommitted()).toMatchObject([{ offset: 6, clock: 1020, ended: [] }]);
  });

  /** Partition 0 has another log than the group has read, and the records that have been taken from both. */
  function replaced() {
    const planned: number[] = [];
    const plan = (records: LogRecord[]) => records.map(({ partition, offset }) => (partition === 0 && planned.push(offset), []));
    const intake = new LaneIntake({ concurrency: 1, maxOutstanding: 100, plan });
    const inLostLog = { offset: 3, clock: 7000, timestamp: 7000, ended: [{ from: 4, to: 5 }] };
    const committed = [
      { topic: TOPIC, partition: 0, ...inLostLog },
      { topic: TOPIC, partition: 1, offset: 0, clock: 0, ended: [] },
    ];
    intake.keepOnly(committed);
    intake.assign(committed);
    const check = () => intake.check(TOPIC, 0, { records: log[0]!.slice(2, 6), fetchedOffset: 2, highWatermark: 6, logStart: 0 });
    expect(check()).toEqual({ kind: 'replaced' });
    return { intake, inLostLog, committed, check, planned };
  }

  it('skips no record of another log because of progress in the log before, which an assignment returns as long as nothing else is committed', async () => {
    const { intake, committed, check, planned } = replaced();
    await intake.take(TOPIC, 0, log[0]!.slice(0, 4));
    intake.keepOnly(committed);
    intake.assign(committed);
    expect(check()).toEqual({ kind: 'replaced' });
    await intake.take(TOPIC, 0, log[0]!.slice(0, 6));
    expect(planned).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 4, 5]);
    const [progress] = intake.uncommitted();
    expect(progress).toMatchObject({ partition: 0, offset: 6, ended: [] });
    progress!.done();
    intake.keepOnly(committed);
    intake.assign([{ ...progress!, topic: TOPIC, partition: 0 }]);
    expect(intake.next(TOPIC, 0)).toBe(6);
  });

  it('commits no progress in the new log of a partition while that is withheld, and handles its records', async () => {
    const { intake, inLostLog } = replaced();
    const { promise: repaired, resolve } = Promise.withResolvers<void>();
    intake.withhold(TOPIC, 0, repaired);
    for (const partition of [0, 1]) await intake.take(TOPIC, partition, log[partition]!.slice(0, 6));
    expect(intake.uncommitted()).toMatchObject([{ partition: 1, offset: 6 }]);
    // a commit that shows whether the group accepts one
    expect(intake.uncommitted(0, true)).toMatchObject([
      { partition: 0, ...inLostLog },
      { partition: 1, offset: 6 },
    ]);
    expect(intake.positions()).toMatchObject([
      { partition: 0, offset: 6, withheld: true },
      { partition: 1, offset: 6, withheld: false },
    ]);
    resolve();
    await settle();
    expect(intake.uncommitted()).toMatchObject([
      { partition: 0, offset: 6 },
      { partition: 1, offset: 6 },
    ]);
  });

  it('reads a log that ends below its position from the beginning, unless the position has changed meanwhile', async () => {
    const intake = new LaneIntake({ concurrency: 1, maxOutstanding: 100, plan: (records) => records.map(() => []) });
    const at = { topic: TOPIC, partition: 0 };
    const known = { clock: 7000, timestamp: 7000, ended: [] };
    intake.keepOnly([at]);
    expect(intake.next(TOPIC, 0)).toBeUndefined();
    intake.assign([{ ...at, ...known, offset: 3 }]);
    const next = intake.next(TOPIC, 0)!;
    expect(intake.endsEarly(TOPIC, 0, 3, next)).toBe(false);
    intake.rewind({ ...at, ...known, offset: 2 });
    expect(intake.endsEarly(TOPIC, 0, 2, next)).toBe(false);
    expect(intake.endsEarly(TOPIC, 0, 1, next)).toBe(true);
    await intake.take(TOPIC, 0, log[0]!.slice(0, 1));
    expect(intake.uncommitted()).toMatchObject([{ offset: 1, clock: 1000, ended: [] }]);
  });
});

describe('a lane intake whose next records retention has deleted', () => {
  const at = { topic: TOPIC, partition: 0 };

  /** It has read the records below 3; the first that is left is number 6. */
  function behindGap(plan: (records: LogRecord[]) => Task[][] = (records) => records.map(() => [])) {
    const [reports, ends]: [unknown[], (() => void)[]] = [[], []];
    const intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 100,
      plan,
      onMissed: (missed) => ({
        lane: 'missed',
        run: () => {
          reports.push(missed);
          return new Promise((resolve) => ends.push(resolve));
        },
      }),
    });
    intake.keepOnly([at]);
    intake.assign([{ ...at, offset: 3, clock: 1020, timestamp: 1020, ended: [] }]);
    const fetch = (offset: number) =>
      intake.check(TOPIC, 0, { records: log[0]!.slice(offset), fetchedOffset: offset, highWatermark: 30, logStart: offset });
    return { intake, reports, ends, fetch };
  }

  it('commits no position behind the gap until its task is done', async () => {
    const { intake, reports, ends, fetch } = behindGap();
    expect(fetch(6)).toMatchObject({ missed: 3 });
    await intake.take(TOPIC, 0, log[0]!.slice(6, 9));
    await settle();
    expect(reports).toEqual([{ partition: 0, from: 3, to: 6, since: 1020 }]);
    expect(intake.uncommitted()).toMatchObject([{ offset: 3, ended: [{ from: 7, to: 9 }] }]);
    ends[0]?.();
    await settle();
    expect(intake.uncommitted()).toMatchObject([{ offset: 9, ended: [] }]);
  });

  it('has one task for two gaps, if no record between them could be planned', async () => {
    let isDown = true;
    const { intake, reports, fetch } = behindGap((records) => {
      if (isDown) throw new Error('the database is down');
      return records.map(() => []);
    });
    fetch(6);
    await expect(intake.take(TOPIC, 0, log[0]!.slice(6, 9))).rejects.toThrow('down');
    expect(fetch(6)).toMatchObject({ missed: 0 });
    expect(fetch(8)).toMatchObject({ missed: 2 });
    isDown = false;
    await intake.take(TOPIC, 0, log[0]!.slice(8, 9));
    await settle();
    expect(reports).toEqual([{ partition: 0, from: 3, to: 8, since: 1020 }]);
  });

  it('stays below the gap while all records behind it are hidden', async () => {
    const { intake, reports, fetch } = behindGap();
    fetch(9);
    intake.skipHidden(TOPIC, 0, { records: log[0]!.slice(9, 10), fetchedOffset: 9, highWatermark: 30, logStart: 9 });
    expect(intake.uncommitted(0, true)).toMatchObject([{ offset: 3 }]);
    await intake.take(TOPIC, 0, log[0]!.slice(10, 11));
    await settle();
    expect(reports).toEqual([{ partition: 0, from: 3, to: 9, since: 1020 }]);
  });
});

describe('a lane intake without capacity', () => {
  const ends: (() => void)[] = [];
  const intakeOf = (limits: { maxOutstanding: number; maxOutstandingBytes?: number }) => {
    ends.length = 0;
    const intake = new LaneIntake({
      concurrency: 10,
      ...limits,
      plan: (records) =>
        records.map(({ offset }) => [{ lane: `${offset}`, run: () => new Promise<void>((resolve) => ends.push(resolve)) }]),
    });
    intake.keepOnly([0, 1].map((partition) => ({ topic: TOPIC, partition })));
    intake.assign([0, 1].map((partition) => ({ topic: TOPIC, partition, offset: 0, clock: 0, ended: [] })));
    return intake;
  };
  const large = (offset: number): KafkaMessage => ({ ...log[0]![0]!, key: null, offset: `${offset}`, value: Buffer.alloc(40) });

  it('accepts no more records while the unfinished ones have too many bytes', async () => {
    const intake = intakeOf({ maxOutstanding: 100, maxOutstandingBytes: 100 });
    expect(await intake.take(TOPIC, 0, [0, 1, 2].map(large))).toBe(true);
    expect(intake.load).toBe(1.2);
    expect(await intake.take(TOPIC, 1, [large(0)])).toBe(false);
    ends.shift()?.();
    await settle();
    expect(intake.hasCapacity).toBe(true);
    expect(await intake.take(TOPIC, 1, [large(0)])).toBe(true);
  });

  it('accepts records although many tasks wait that belong to none', async () => {
    const intake = intakeOf({ maxOutstanding: 2 });
    for (let n = 0; n < 5; n++) intake.push({ lane: `other ${n}`, run: () => new Promise<void>((resolve) => ends.push(resolve)) });
    expect([intake.load, intake.hasCapacity]).toEqual([0, true]);
    await intake.take(TOPIC, 0, [0, 1].map(large));
    expect([intake.load, intake.hasCapacity]).toEqual([1, false]);
    for (const end of ends) end();
    await settle();
    expect([intake.load, intake.lanes.outstanding]).toEqual([0, 0]);
  });

  it('plans one part of what several partitions offer at the same time, and the rest later', async () => {
    const intake = intakeOf({ maxOutstanding: 400 });
    const many = Array.from({ length: 500 }, (_, offset) => ({ ...large(offset), value: null }));
    expect(await Promise.all([intake.take(TOPIC, 0, many), intake.take(TOPIC, 1, many)])).toEqual([true, false]);
    expect(intake.lanes.outstanding).toBe(500);
  });
});

describe('a lane intake that plans the same records twice', () => {
  it('runs the tasks of each record once, and drops the others', async () => {
    const [ran, dropped, calls]: [number[], number[], PromiseWithResolvers<void>[]] = [[], [], []];
    const intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 12,
      plan: async (records) => {
        const call = Promise.withResolvers<void>();
        calls.push(call);
        await call.promise;
        return records.map(({ offset }) => [
          { lane: 'one', run: async () => void ran.push(offset), drop: () => void dropped.push(offset) },
        ]);
      },
    });
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, timestamp: 1, ended: [] }]);
    const before = intake.take(TOPIC, 0, log[0]!.slice(0, 3));
    while (!calls[0]) await settle();
    // the process rejoins the group, and fetches from the committed position
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, timestamp: 1, ended: [] }]);
    const after = intake.take(TOPIC, 0, log[0]!.slice(0, 5));
    calls[0].resolve();
    while (!calls[1]) await settle();
    calls[1].resolve();
    await Promise.all([before, after]);
    await intake.lanes.waitUntilBelow(1);
    expect({ ran, dropped }).toEqual({ ran: [0, 1, 2, 3, 4], dropped: [0, 1, 2] });
    expect(intake.uncommitted()).toMatchObject([{ offset: 5 }]);
  });
});

describe('a task of a record', () => {
  it('belongs to this process unless the tasks are suspended or its partition is lost; when it has begun, it stays so', async () => {
    const tasks: Task[] = [];
    const intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 12,
      plan: (records) => records.map(() => [(tasks[tasks.length] = { lane: 'one', run: () => new Promise(() => {}) })]),
    });
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, timestamp: 1, ended: [] }]);
    await intake.take(TOPIC, 0, log[0]!.slice(0, 2));
    await settle();
    const own = () => tasks.map((task) => task.isOwn?.());
    expect(own()).toEqual([true, true]);
    intake.suspend();
    expect(own()).toEqual([true, false]);
    intake.resume();
    expect(own()).toEqual([true, true]);
    intake.keepOnly([]);
    expect(own()).toEqual([true, false]);
  });
});

describe('a lane intake that is closed', () => {
  /** Three records of one lane and one of another; the first of each is in progress. */
  async function begun() {
    const ends: { offset: number; succeed(): void; fail(): void }[] = [];
    const dropped: number[] = [];
    const intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 12,
      plan: (records) =>
        records.map(({ offset }) => [
          {
            lane: offset === 1 ? 'other' : 'one',
            run: () =>
              new Promise<void>((resolve, reject) => ends.push({ offset, succeed: resolve, fail: () => reject(new Error('failed')) })),
            drop: () => void dropped.push(offset),
          },
        ]),
    });
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, timestamp: 1, ended: [] }]);
    await intake.take(TOPIC, 0, log[0]!.slice(0, 4));
    await settle();
    expect(ends.map(({ offset }) => offset)).toEqual([0, 1]);
    return { intake, ends, dropped, end: (offset: number) => ends.find((each) => each.offset === offset)! };
  }

  it('finishes the tasks in progress, starts no others and leaves the rest uncommitted', async () => {
    const { intake, ends, dropped, end } = await begun();
    intake.close();
    end(0).succeed();
    end(1).succeed();
    await intake.lanes.waitUntilBelow(1);
    expect(ends).toHaveLength(2);
    expect(dropped).toEqual([2, 3]);
    expect(intake.uncommitted()).toMatchObject([{ partition: 0, offset: 2, ended: [] }]);
  });

  it.each(['close', 'suspend'] as const)('counts the tasks as done that are settled when their turn comes: %s', async (change) => {
    const settled = new Set<number>();
    const run = jest.fn(async () => {});
    const intake = new LaneIntake({
      ...{ concurrency: 1, maxOutstanding: 100 },
      plan: (records) => records.map(({ offset }) => [{ lane: `${offset}`, run, isSettled: () => settled.has(offset) }]),
    });
    intake.keepOnly([{ topic: TOPIC, partition: 0 }]);
    intake.assign([{ topic: TOPIC, partition: 0, offset: 0, clock: 0, timestamp: 1, ended: [] }]);
    for (const offset of [0, 1]) settled.add(offset);
    intake[change]();
    await intake.take(TOPIC, 0, log[0]!.slice(0, 3));
    await settle();
    expect(intake.uncommitted()).toMatchObject([{ partition: 0, offset: 2, ended: [] }]);
  });

  it('does not repeat a failing task, and leaves it uncommitted', async () => {
    const { intake, ends, end } = await begun();
    intake.close();
    end(0).fail();
    end(1).succeed();
    await intake.lanes.waitUntilBelow(1);
    expect(ends).toHaveLength(2);
    expect(intake.uncommitted()).toMatchObject([{ partition: 0, offset: 0, ended: [{ from: 1, to: 2 }] }]);
  });

  it('does not repeat a task that has failed before, and leaves it uncommitted', async () => {
    const { intake, ends, end } = await begun();
    end(0).fail();
    await settle();
    intake.close();
    end(1).succeed();
    await intake.lanes.waitUntilBelow(1);
    expect(ends).toHaveLength(2);
    expect(intake.uncommitted()).toMatchObject([{ partition: 0, offset: 0, ended: [{ from: 1, to: 2 }] }]);
  });

  it('releases tasks that wait for the end of a rebalance, also of one that begins later', async () => {
    const { intake, dropped, end } = await begun();
    intake.suspend();
    end(0).succeed();
    end(1).succeed();
    await settle();
    intake.close();
    intake.suspend();
    await intake.lanes.waitUntilBelow(1);
    expect(dropped).toEqual([2, 3]);
  });
});
