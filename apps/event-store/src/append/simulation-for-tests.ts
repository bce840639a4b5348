import { expect, jest } from '@jest/globals';
import { Batch, LogIntake, type Publisher } from '#messaging';
import { createLog } from '#observability';
import { type Random, seededRandom } from '#testing';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendService } from './append.service.js';
import { StreamCounter, TrimCounter } from './stream-counters.js';
import { AppendController } from './append.controller.js';
import { BOX, EMITTERS, NOW, TestLog } from './log-for-tests.js';
import { MemoryAppendRepository, MemoryTables, type Mutant as RepositoryMutant } from './memory-append-repository-for-tests.js';
import { apply, type Model, stepBack } from './model-for-tests.js';
import type { Operation } from './replay.js';

/*
 * Two processes of the store over one log and one database, and everything that can happen between any two statements:
 * a process dies, a connection breaks before or after the commit, the group reassigns the partitions and one of the processes learns of it late, a fetch
 * returns records from before a seek, a partition loses its log and begins another one, the clock of a broker is ahead for some time. After each commit,
 * the store must equal what the model computes from the records up to the position; at the end, from all records.
 */

const MOMENTS = 800;
const PARTITIONS = 2;
const silent = createLog('test', 'silent');

/** Mutants of the store, apart from its repository. */
export type Mutant =
  | RepositoryMutant
  | 'silence ignored'
  | 'deletion bounded by its time'
  | 'deletions before the events of their batch'
  | 'due event left in $in';

interface Step {
  name: string;
  goOn(): void;
  fail(error: Error): void;
}

/** One process of the store, as kafkajs and the scheduler see it. */
class Process {
  readonly steps: Step[] = [];
  readonly offsets = new Map<number, number>();
  paused: number[] = [];
  readonly intake: LogIntake;
  readonly repository: MemoryAppendRepository;

  constructor(
    private readonly world: World,
    mutant: Mutant | undefined,
  ) {
    const step = (name: string) => new Promise<void>((resolve, reject) => this.steps.push({ name, goOn: resolve, fail: reject }));
    this.repository = new MemoryAppendRepository(world.tables, step, mutant as RepositoryMutant);
    const service = new MutantService(this.repository, new TrimCounter(world.random), world, mutant);
    const nobody = undefined as unknown as Publisher;
    const config = Object.assign(EventStoreConfig.read({}), { maxEventBytes: 1000 });
    const events = new AppendController(silent, nobody, service, this.repository, config, BOX, {} as never);
    this.intake = new LogIntake(
      silent,
      {
        topic: 'events',
        positions: (partitions) => this.repository.positions(partitions),
        handle: (partition, records, before, after) => events.append(new Batch(partition, records, before, after)),
      },
      {
        seek: (partition, offset) => void (this.offsets.has(partition) && this.offsets.set(partition, offset)),
        pauseOnly: (partitions) => void (this.paused = partitions),
      },
    );
  }

  assign(partitions: number[]): void {
    this.offsets.clear();
    // like kafkajs: until it seeks, it reads from the beginning
    for (const partition of partitions) this.offsets.set(partition, 0);
    void this.intake.assign(partitions);
  }

  fetch(partition: number, from: number, count: number): void {
    const records = this.world.log.partitions[partition] ?? [];
    // for an offset outside the log, kafkajs begins at the beginning
    if (from > records.length) this.offsets.set(partition, 0);
    const messages = records.slice(from, from + count).map(({ message }) => message);
    if (messages.length === 0) return;
    if (this.intake.take({ partition, messages, records: messages, fetchedOffset: from, highWatermark: records.length, logStart: 0 }))
      this.offsets.set(partition, from + messages.length);
  }
}

class MutantService extends AppendService {
  constructor(
    repository: MemoryAppendRepository,
    trims: TrimCounter,
    private readonly world: World,
    private readonly mutant: Mutant | undefined,
  ) {
    super(repository, trims, new StreamCounter());
  }

  override append(...[partition, operations, before, after]: Parameters<AppendService['append']>): ReturnType<AppendService['append']> {
    const mutated = this.mutate(operations, partition);
    return super.append(partition, mutated, before, after);
  }

  private mutate(operations: Operation[], partition: number): Operation[] {
    if (this.mutant === 'due event left in $in')
      return operations.map((each) => (each.kind === 'event' ? { ...each, waited: false } : each));
    if (this.mutant === 'deletions before the events of their batch')
      return [...operations].sort((a, b) => Number(b.kind === 'delete') - Number(a.kind === 'delete'));
    if (this.mutant !== 'deletion bounded by its time') return operations;
    return operations.map((each) => {
      if (each.kind === 'event' || (each.end && each.end.ms <= each.place.ms)) return each;
      const record = this.world.log.partitions[partition]?.[Math.floor(each.place.seq / 4096)];
      return { ...each, end: { ms: Number(record?.message.timestamp), seq: Number.MAX_SAFE_INTEGER } };
    });
  }
}

/** How far the model has applied a partition: which of its logs, and up to which offset. */
interface State {
  log: number;
  offset: number;
  clock: number;
  model: Model;
}

class World {
  readonly tables = new MemoryTables();
  readonly random: Random;
  readonly log: TestLog;
  private processes: Process[];
  private owners = [0, 1];
  /** The processes that do not know their new partitions yet. */
  private outdated: number[] = [];
  private readonly models = Array.from({ length: PARTITIONS }, (): State => ({ log: 0, offset: 0, clock: 0, model: new Map() }));
  private readonly withdrawn = new Set<string>();

  constructor(
    seed: number,
    private readonly mutant?: Mutant,
  ) {
    this.random = seededRandom(seed);
    this.log = new TestLog(this.random);
    this.processes = [new Process(this, mutant), new Process(this, mutant)];
    this.outdated = [0, 1];
  }

  async play(): Promise<void> {
    for (let moment = 0; moment < MOMENTS; moment++) {
      this.happen();
      await settle();
      this.check();
    }
    await this.comeToRest();
    this.check(this.models.map(({ model }) => model));
  }

  private happen(): void {
    const dice = this.random();
    const process = this.processes[Math.floor(this.random() * 2)] as Process;
    if (dice < 0.08) this.log.produce();
    else if (dice < 0.26) this.fetch(process);
    else if (dice < 0.28) this.staleFetch(process);
    else if (dice < 0.955) this.goOn(process);
    else if (dice < 0.965) this.breakConnection(process);
    else if (dice < 0.97) this.die(process);
    else if (dice < 0.975) this.rebalance();
    else if (dice < 0.98) this.informOne();
    else if (dice < 0.983) this.replaceLog();
    else if (dice < 0.992) this.log.setClock();
    else pass(5000);
  }

  private fetch(process: Process): void {
    for (const [partition, offset] of process.offsets)
      if (!process.paused.includes(partition)) process.fetch(partition, offset, 1 + Math.floor(this.random() * 60));
  }

  /** A fetch that was requested before a seek or a pause and returns after it. */
  private staleFetch(process: Process): void {
    for (const [partition, offset] of [...process.offsets]) {
      process.fetch(partition, Math.max(0, offset + Math.floor(this.random() * 80) - 60), 30);
      process.fetch(partition, process.offsets.get(partition) ?? offset, 30);
    }
  }

  private goOn(process: Process): void {
    const [step] = process.steps.splice(Math.floor(this.random() * process.steps.length), 1);
    step?.goOn();
  }

  private breakConnection(process: Process): void {
    const [step] = process.steps.splice(Math.floor(this.random() * process.steps.length), 1);
    step?.fail(Object.assign(new Error('Connection terminated'), { code: '08006' }));
  }

  private die(process: Process): void {
    const index = this.processes.indexOf(process);
    process.repository.rollBackAll();
    this.processes[index] = new Process(this, this.mutant);
    this.rebalance();
    this.outdated = this.outdated.filter((other) => other !== index);
    this.assign(index);
  }

  private rebalance(): void {
    this.owners = this.owners.map(() => Math.floor(this.random() * 2));
    this.outdated = [0, 1];
    this.informOne();
  }

  private informOne(): void {
    const [index] = this.outdated.splice(Math.floor(this.random() * this.outdated.length), 1);
    if (index !== undefined) this.assign(index);
  }

  /** A reader notices the change, because the group is assigned again or the broker did not respond. */
  private replaceLog(): void {
    this.log.replace();
    if (this.mutant !== 'silence ignored') for (const { intake } of this.processes) intake.reverify();
  }

  private assign(index: number): void {
    this.processes[index]?.assign(this.owners.flatMap((owner, partition) => (owner === index ? [partition] : [])));
  }

  private async comeToRest(): Promise<void> {
    while (this.outdated.length > 0) this.informOne();
    for (let rounds = 0; rounds < 3000; rounds++) {
      for (const process of this.processes) {
        this.fetch(process);
        this.goOn(process);
        await settle();
        this.follow();
      }
      // no check after each one: mutants may already differ
      pass(1000);
      if (this.log.partitions.every((records, partition) => this.isAtEnd(records, partition))) return;
    }
    throw new Error('the store does not come to the end of the log');
  }

  private isAtEnd(records: { message: { timestamp: string } }[], partition: number): boolean {
    const { offset, timestamp } = this.tables.positions.get(partition) ?? { offset: 0, timestamp: undefined };
    return records.length === 0 || (offset === records.length && Number(records.at(-1)?.message.timestamp) === timestamp);
  }

  /** Lets the models apply the logs up to the position. Returns those that have changed. */
  private follow(): Model[] {
    const changed: Model[] = [];
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const position = this.tables.positions.get(partition) ?? { offset: 0, clock: 0 };
      const state = this.models[partition] as State;
      const logs = [...(this.log.lost[partition] ?? []), this.log.partitions[partition] ?? []];
      const log = logs.findIndex((records) => Number(records[position.offset - 1]?.message.timestamp) === position.timestamp);
      if (position.offset === 0 || (position.offset === state.offset && log === state.log)) continue;
      if (log < state.log || (log === state.log && position.offset < state.offset)) throw new Error('the position went back');
      if (log > state.log) Object.assign(state, { log, offset: 0 });
      changed.push(state.model);
      for (; state.offset < position.offset; state.offset++) {
        const { operation } = logs[log]![state.offset]!;
        const { ms } = operation.place;
        if (ms < state.clock || (ms === state.clock && state.offset === 0))
          stepBack(state.model, EMITTERS[partition] ?? [], { from: ms, ms });
        state.clock = ms;
        for (const key of apply(state.model, operation)) this.withdrawn.add(key);
      }
    }
    return changed;
  }

  /** The store must equal the model of the logs up to the position. */
  private check(models = this.follow()): void {
    for (const model of models) {
      for (const [key, events] of model) {
        const [emitterId, stream] = key.split(' ') as [`dc_${string}`, string];
        const shown = this.tables.shown({ emitterId, stream }).map(({ place, emitId }) => ({ place, emitId }));
        expect(shown).toEqual(events);
      }
    }
    expect(this.tables.withdrawn).toEqual(this.withdrawn);
  }
}

/** Lets timers end. By the clocks of the processes, no time passes, so that all of them judge the clocks of the log alike. */
function pass(ms: number): void {
  jest.advanceTimersByTime(ms);
  jest.setSystemTime(NOW);
}

/** Lets all pending promises settle. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Plays one simulation. The same seed gives the same simulation.
 * @throws if the store deviates from the model
 */
export async function playSimulation(seed: number, mutant?: Mutant): Promise<void> {
  jest.useFakeTimers({ now: NOW, doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'hrtime'] });
  try {
    await new World(seed, mutant).play();
  } finally {
    jest.useRealTimers();
  }
}
