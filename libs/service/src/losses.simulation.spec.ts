import { describe, expect, it } from '@jest/globals';
import type { Database } from '#database';
import { type Consumers, type GroupPosition, LaneIntake, type PartitionProgress } from '#messaging';
import { createLog } from '#observability';
import { seededRandom } from '#testing';
import { DatabaseRestores } from './database-restores.js';

/*
 * One consumer of one partition, over a log and a database that are damaged at any moment: the log is replaced by another one, retention deletes its
 * beginning, its clock jumps, the database returns to an older state, the process dies. In the end, each record that still exists has its effect in the
 * database, and a record without an effect was destroyed by a damage that the consumer has noticed.
 */

const MOMENTS = 400;
const RUNS = 150;
const TOPIC = 'events';
const GROUP = 'routing.events';
const AT = { topic: TOPIC, partition: 0 };
const silent = createLog('test', 'silent');

/** The faults of the consumer. */
const MUTANTS = [
  'the log is not identified',
  'a silence is ignored',
  'a running process does not return',
  'a starting process does not return',
  'the period is not verified',
  'the last commit keeps its time',
] as const;
type Mutant = (typeof MUTANTS)[number];

interface Stored {
  effects: Set<string>;
  position: GroupPosition | undefined;
  periods: Map<string, { from: number; to: number }>;
}

/** The statements of `DatabaseRestores`, in memory. */
class MemoryDatabase {
  stored: Stored = { effects: new Set(), position: undefined, periods: new Map() };

  constructor(
    private readonly now: () => number,
    private readonly mutant?: Mutant,
  ) {}

  async query(statement: string | { name: string; values: unknown[] }): Promise<{ rows: object[] }> {
    const { position, periods } = this.stored;
    if (typeof statement === 'string') return { rows: position ? [rowOf(position)] : [] };
    const { name, values } = statement;
    if (name === 'database-period-begin') {
      periods.set(values[0] as string, { from: this.now(), to: this.now() });
      return { rows: [{ to_ms: this.now() }] };
    }
    if (name === 'database-period-extend') {
      const period = periods.get(values[0] as string);
      if (!period || (period.to < (values[1] as number) && this.mutant !== 'the period is not verified')) return { rows: [] };
      period.to = Math.max(period.to + 1, this.now());
      return { rows: [{ to_ms: period.to }] };
    }
    if (name === 'database-period-find') {
      const ms = values[0] as number;
      return { rows: [...periods.values()].filter(({ from, to }) => from <= ms && ms <= to) };
    }
    if (name === 'consumer-position-store') {
      const [[group], [topic], [partition], [offset], [clock], [timestamp]] = values as [
        string[],
        string[],
        number[],
        number[],
        number[],
        number[],
      ];
      this.stored.position = { group, topic, partition, offset, clock, timestamp: timestamp ?? undefined } as GroupPosition;
    }
    return { rows: [] };
  }
}

const rowOf = ({ group, topic, partition, offset, clock, timestamp }: GroupPosition) => ({
  ...{ consumer_group: group, topic, partition, next_offset: offset, last_ms: clock, record_ms: timestamp ?? null },
});

/** One process: what `LaneConsumer` does with kafkajs, with its fetches under control. */
class Process {
  readonly intake: LaneIntake;
  readonly restores: DatabaseRestores;
  readonly pending: (() => void)[] = [];
  alive = true;
  fetchAt = 0;

  constructor(
    private readonly world: World,
    private readonly mutant?: Mutant,
  ) {
    this.intake = new LaneIntake({
      concurrency: 3,
      maxOutstanding: 20,
      plan: (records) => records.map((record) => [{ lane: record.key ?? '', run: () => this.run(String(record.value)) }]),
    });
    const storedPositions = (): GroupPosition[] =>
      this.intake
        .positions()
        .map(({ topic, partition, offset, clock, timestamp }) => ({ group: GROUP, topic, partition, offset, clock, timestamp }));
    const consumers = { storedPositions, rewind: (to: GroupPosition[]) => this.rewind(to) } as unknown as Consumers;
    this.restores = new DatabaseRestores(consumers, silent);
  }

  async start(): Promise<void> {
    await this.restores.start(this.world.database as unknown as Database);
    // the world calls `look`
    await this.restores.stop();
    this.intake.keepOnly([AT]);
    const { databaseMs = 0, ...committed } = this.world.committed;
    const restored =
      this.mutant === 'a starting process does not return'
        ? undefined
        : await this.restores.positionFor({ group: GROUP, ...AT }, databaseMs);
    const progress = restored ? { ...AT, ...restored, ended: [] } : committed;
    this.fetchAt = progress.timestamp === undefined || progress === committed ? progress.offset : progress.offset - 1;
    this.intake.assign([progress]);
  }

  private rewind(positions: GroupPosition[]): void {
    if (this.mutant === 'a running process does not return') return;
    const position = positions[0] ?? { offset: 0, clock: 0, timestamp: undefined };
    if (this.intake.rewind({ ...AT, offset: position.offset, clock: position.clock, timestamp: position.timestamp }))
      this.fetchAt = position.timestamp === undefined ? position.offset : position.offset - 1;
  }

  silence(): void {
    if (this.mutant === 'a silence is ignored') return;
    for (const { from } of this.intake.reverify()) this.fetchAt = from;
  }

  async fetch(count: number): Promise<void> {
    const { records, start } = this.world.log;
    if (!this.intake.hasCapacity) return;
    const fetchedOffset = this.fetchAt < start || this.fetchAt > records.length ? start : this.fetchAt;
    const messages = records.slice(fetchedOffset, fetchedOffset + count).map(({ message }) => message);
    if (messages.length === 0) return;
    const continuation = this.intake.check(TOPIC, 0, { records: messages, fetchedOffset, highWatermark: records.length, logStart: start });
    if (continuation.kind === 'continues') {
      this.world.missed += continuation.missed;
      if (!(await this.intake.take(TOPIC, 0, messages))) return;
      this.fetchAt = fetchedOffset + messages.length;
    } else {
      if (continuation.kind === 'replaced') this.world.replaced += 1;
      this.fetchAt = continuation.kind === 'replaced' ? 0 : continuation.from;
    }
  }

  commit(): void {
    const stamp = this.mutant === 'the last commit keeps its time' ? undefined : this.restores.databaseMs;
    for (const progress of this.intake.uncommitted(stamp)) {
      const { done, ...rest } = progress;
      const timestamp = this.mutant === 'the log is not identified' ? undefined : rest.timestamp;
      this.world.committed = { ...rest, timestamp, databaseMs: this.restores.databaseMs };
      done();
    }
  }

  private async run(name: string): Promise<void> {
    await new Promise<void>((resolve) => this.pending.push(resolve));
    // a dead process does nothing
    if (!this.alive) return new Promise(() => {});
    this.world.database.stored.effects.add(name);
  }
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

class World {
  readonly database: MemoryDatabase;
  log = this.emptyLog();
  committed: PartitionProgress & { databaseMs?: number } = { ...AT, offset: 0, clock: 0, ended: [] };
  missed = 0;
  replaced = 0;
  private readonly random: () => number;
  private now = Date.now() - 3_600_000;
  private count = 0;
  private readonly stamps = new Set<number>();
  /** The records that need no effect: they were destroyed before they had one, or with the database that had it. */
  private readonly destroyed = new Set<string>();
  private readonly names: string[] = [];
  private backup: { stored: Stored; looks: number } | undefined;
  private looks = 0;
  private process: Process;

  constructor(
    seed: number,
    private readonly mutant?: Mutant,
  ) {
    this.random = seededRandom(seed);
    this.database = new MemoryDatabase(() => this.now, mutant);
    this.process = new Process(this, mutant);
  }

  async play(): Promise<void> {
    await this.process.start();
    for (let moment = 0; moment < MOMENTS; moment++) {
      await this.happen();
      await settle();
    }
    await this.comeToRest();
    this.check();
  }

  private emptyLog(): { start: number; records: { name: string; message: Parameters<LaneIntake['take']>[2][number] }[] } {
    return { start: 0, records: [] };
  }

  private async happen(): Promise<void> {
    const dice = this.random();
    this.now += Math.floor(this.random() * 30);
    if (dice < 0.2) this.produce(1 + Math.floor(this.random() * 5));
    else if (dice < 0.45) await this.process.fetch(1 + Math.floor(this.random() * 6));
    else if (dice < 0.75) this.finish();
    else if (dice < 0.86) this.process.commit();
    else if (dice < 0.93) await this.look();
    else if (dice < 0.95) this.backup ??= { stored: structuredClone(this.database.stored), looks: this.looks };
    else if (dice < 0.965) await this.restore();
    else if (dice < 0.98) await this.die();
    else if (dice < 0.985) this.replaceLog();
    else if (dice < 0.99) this.deleteOld();
    else this.produce(1, 10 * 365 * 24 * 3_600_000);
  }

  /** `aheadMs`: the clock of its producer, or of the broker, is wrong. */
  private produce(count: number, aheadMs = 0): void {
    for (let n = 0; n < count; n++) {
      const name = `record ${this.count++}`;
      this.names.push(name);
      this.now += 1;
      let stamp = this.now + aheadMs;
      // a log is identified by the timestamps of its records
      while (this.stamps.has(stamp)) stamp += 1;
      this.stamps.add(stamp);
      const { records } = this.log;
      const message = {
        ...{ key: Buffer.from(`key ${this.count % 3}`), value: Buffer.from(name), headers: {}, attributes: 0 },
        ...{ offset: String(records.length), timestamp: String(stamp) },
      };
      records.push({ name, message });
    }
  }

  private finish(): void {
    const { pending } = this.process;
    const [release] = pending.splice(Math.floor(this.random() * pending.length), 1);
    release?.();
  }

  private async look(): Promise<void> {
    this.now += 1000;
    this.looks += 1;
    await this.process.restores.extendPeriod();
  }

  private async die(): Promise<void> {
    this.process.alive = false;
    this.process = new Process(this, this.mutant);
    await this.process.start();
  }

  /** The database returns to the backup. A loss within a second of it cannot be noticed. */
  private async restore(): Promise<void> {
    const { backup } = this;
    if (!backup || this.looks < backup.looks + 2) return;
    this.backup = undefined;
    const stops = this.random() < 0.5;
    if (stops) {
      // a regular stop commits all finished work
      this.process.commit();
      this.process.alive = false;
    }
    this.database.stored = backup.stored;
    // what the log does not have any more cannot be done again
    const { start, records } = this.log;
    const readable = new Set(records.slice(start).map(({ name }) => name));
    for (const name of this.names) if (!readable.has(name)) this.destroyed.add(name);
    if (!stops) return;
    this.process = new Process(this, this.mutant);
    await this.process.start();
  }

  /** The log begins again; it may soon be longer than the lost one. Who reads notices that the broker was silent. */
  private replaceLog(): void {
    for (const { name } of this.log.records) if (!this.database.stored.effects.has(name)) this.destroyed.add(name);
    const { length } = this.log.records;
    this.log = this.emptyLog();
    if (this.random() < 0.6) this.produce(length + 3);
    this.process.silence();
  }

  private deleteOld(): void {
    const { records, start } = this.log;
    this.log.start = Math.min(records.length, start + Math.floor(this.random() * 12));
    for (const { name } of records.slice(0, this.log.start)) if (!this.database.stored.effects.has(name)) this.destroyed.add(name);
  }

  private async comeToRest(): Promise<void> {
    this.produce(3);
    for (let rounds = 0; rounds < 400; rounds++) {
      await this.look();
      this.process.silence();
      for (let n = 0; n < 4; n++) await this.process.fetch(10);
      await settle();
      while (this.process.pending.length > 0) {
        this.finish();
        await settle();
      }
      this.process.commit();
      if (rounds > 10 && this.process.intake.positions()[0]?.offset === this.log.records.length) return;
    }
    throw new Error('the consumer does not come to the end of the log');
  }

  private check(): void {
    const { effects } = this.database.stored;
    const lost = this.names.filter((name) => !effects.has(name) && !this.destroyed.has(name));
    expect(lost).toEqual([]);
  }
}

describe('a consumer whose log and database are damaged', () => {
  const first = Number(process.env.SLUICE_SEED);

  it('loses no record that still exists', async () => {
    for (let seed = first; seed < first + RUNS; seed++) {
      await new World(seed).play().catch((error: Error) => {
        throw new Error(`SLUICE_SEED=${seed}: ${error.message}`, { cause: error });
      });
    }
    expect.hasAssertions();
  }, 120_000);

  it.each(MUTANTS)(
    'would lose some if %s',
    async (mutant) => {
      for (let seed = 1; ; seed++) {
        if (seed > 2000) throw new Error('2000 simulations did not detect it');
        const failed = await new World(seed, mutant).play().then(
          () => false,
          () => true,
        );
        if (failed) return;
      }
    },
    120_000,
  );
});
