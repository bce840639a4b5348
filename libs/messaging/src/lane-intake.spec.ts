import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { KafkaMessage } from 'kafkajs';
import { LaneIntake, type PartitionPosition } from './lane-intake.js';
import type { LogRecord } from './log-record.js';

const TOPIC = 'events';
const PARTITIONS = 2;
const RECORDS = 30;
const KEYS = 3;

/** What happens next; the numbers pick one of what there is at that moment. */
type Step =
  | { do: 'fetch' | 'finish' | 'commit' | 'crash'; pick: number }
  /** The group hands the partitions out anew. */
  | { do: 'rebalance'; owners: number[] };

const pick = fc.nat(1000);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('fetch' as const), pick }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('finish' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('commit' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('rebalance' as const),
      owners: fc.array(fc.nat(1), { minLength: PARTITIONS, maxLength: PARTITIONS }),
    }),
  },
);

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The log: each partition's records, with a clock that steps back now and then. */
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

interface Effect {
  partition: number;
  offset: number;
  key: string;
  clock: number;
}

/** A process of the group: an intake, how far it has fetched, and tasks that wait to be let go. */
class Process {
  alive = true;
  readonly fetched = new Map<number, number>();
  readonly pending: (() => void)[] = [];
  readonly intake: LaneIntake;

  constructor(effects: Effect[]) {
    this.intake = new LaneIntake({
      concurrency: 4,
      maxOutstanding: 12,
      plan: (records) => records.map((record) => [{ lane: record.key ?? '', run: () => this.run(record, effects) }]),
    });
  }

  private async run({ partition, offset, key, clock }: LogRecord, effects: Effect[]): Promise<void> {
    await new Promise<void>((resolve) => this.pending.push(resolve));
    // a dead process does nothing any more
    if (!this.alive) return new Promise(() => {});
    effects.push({ partition, offset, key: key ?? '', clock });
  }
}

type Uncommitted = (intake: LaneIntake, fetched: Map<number, number>) => PartitionPosition[];

/** Plays the steps, then lets everything come to rest, and answers the effects in the order in which they happened. */
async function play(steps: Step[], uncommitted: Uncommitted): Promise<Effect[]> {
  const effects: Effect[] = [];
  const committed = Array.from({ length: PARTITIONS }, () => ({ offset: 0, clock: 0 }));
  const processes = [new Process(effects), new Process(effects)];
  let owners = [0, 1];

  const assign = () => {
    processes.forEach((process, index) => {
      const mine = owners.flatMap((owner, partition) => (owner === index ? [partition] : []));
      process.intake.assign(mine.map((partition) => ({ topic: TOPIC, partition, ...committed[partition]! })));
      process.fetched.clear();
      // as kafkajs does: every assigned partition is read again from its committed position
      for (const partition of mine) process.fetched.set(partition, committed[partition]!.offset);
    });
  };
  const commit = (process: Process) => {
    const positions = uncommitted(process.intake, process.fetched).filter(({ partition }) => processes[owners[partition]!] === process);
    for (const { partition, offset, clock } of positions) committed[partition] = { offset, clock };
    process.intake.committed(positions);
  };
  const fetch = async (process: Process, partition: number) => {
    if (!process.intake.hasRoom) return;
    const from = process.fetched.get(partition) ?? 0;
    const messages = log[partition]!.slice(from, from + 5);
    await process.intake.take(TOPIC, partition, messages);
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
      assign();
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
    } else {
      process.alive = false;
      processes[index] = new Process(effects);
      assign();
    }
  }
  for (let rounds = 0; rounds < 1000; rounds++) {
    for (const process of processes) {
      for (const partition of process.fetched.keys()) await fetch(process, partition);
      while (process.pending.length > 0) await finish(process, 0);
      await settle();
      commit(process);
    }
    if (committed.every(({ offset }) => offset === RECORDS)) break;
  }
  return effects;
}

const real: Uncommitted = (intake) => intake.uncommitted();

/** Throws when a promise is broken. */
function check(effects: Effect[]): void {
  const clocks = log.map((records) =>
    records.reduce<number[]>((folded, { timestamp }) => [...folded, Math.max(folded.at(-1) ?? 0, Number(timestamp))], []),
  );
  const first = new Map<string, number[]>();
  for (const { partition, offset, key, clock } of effects) {
    const seen = first.get(key) ?? [];
    if (!seen.includes(offset)) first.set(key, [...seen, offset]);
    expect(clock).toBe(clocks[partition]![offset]);
  }
  for (let partition = 0; partition < PARTITIONS; partition++) {
    for (let k = 0; k < KEYS; k++) {
      // each at least once, and for the first time in the order of the log
      expect(first.get(`key-${partition}-${k}`)).toEqual(
        Array.from({ length: RECORDS }, (_, offset) => offset).filter((offset) => offset % KEYS === k),
      );
    }
  }
}

const breaks = async (uncommitted: Uncommitted): Promise<boolean> => {
  const result = await fc.check(
    fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), async (steps) => check(await play(steps, uncommitted))),
    { numRuns: 300, endOnFailure: true, seed: 1 },
  );
  return result.failed;
};

describe('keyed lanes with a low watermark', () => {
  it('lose nothing, keep the order of each key and the clock through crashes and rebalances', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 150, size: 'max' }), async (steps) => check(await play(steps, real))),
      { numRuns: 200 },
    );
  });

  it('would lose records if the position of what was only fetched were committed', async () => {
    const fetchedPosition: Uncommitted = (_intake, fetched) =>
      [...fetched].map(([partition, offset]) => ({ topic: TOPIC, partition, offset, clock: 0 }));
    expect(await breaks(fetchedPosition)).toBe(true);
  });

  it('would forget the clock if it were not committed with the position', async () => {
    expect(await breaks((intake) => intake.uncommitted().map((position) => ({ ...position, clock: 0 })))).toBe(true);
  });
});
