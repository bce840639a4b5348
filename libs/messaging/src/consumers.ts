import { Unavailable } from '#contracts';
import type { LaneConsumer } from './lane-consumer.js';
import type { ReadPosition } from './lane-intake.js';
import type { Task } from './lanes.js';
import type { LogConsumer } from './log-consumer.js';
import type { MissedRecords } from './log-continuity.js';
import type { GroupPosition } from './restores.js';

/** The consumers of this process by group, for features that need more than their handlers. */
export class Consumers {
  private readonly laned = new Map<string, LaneConsumer>();
  private readonly followers: Pick<LogConsumer, 'rewind'>[] = [];
  private readonly onDemand = new Map<string, () => LogConsumer>();
  private readonly missed = new Map<string, (missed: MissedRecords) => Task>();
  private readonly handOvers = new Map<string, () => Promise<void>>();
  private readonly running = new Map<string, LogConsumer>();
  private readonly replacedListeners: ((topic: string) => Promise<void>)[] = [];

  /** For the transport. */
  add(group: string, consumer: LaneConsumer): void {
    this.laned.set(group, consumer);
  }

  /** For the transport: a consumer whose positions are in the database. */
  addFollower(consumer: Pick<LogConsumer, 'rewind'>): void {
    this.followers.push(consumer);
  }

  /** For the transport: a consumer that runs only on demand. */
  addOnDemand(group: string, make: () => LogConsumer): void {
    this.onDemand.set(group, make);
  }

  /** The positions of the groups in the partitions of this process, without those groups whose effects are not in the database. */
  storedPositions(): GroupPosition[] {
    return [...this.laned.values()].flatMap((consumer) => consumer.storedPositions());
  }

  /** Returns to these positions, because the database was restored; followers find their own ones there. */
  rewind(positions: GroupPosition[]): void {
    for (const consumer of this.laned.values()) consumer.rewind(positions);
    for (const consumer of this.followers) consumer.rewind();
  }

  /** Sets the task for records that retention has deleted before the group read them. It is repeated until it has succeeded, also after a crash. */
  watchMissed(group: string, taskOf: (missed: MissedRecords) => Task): void {
    this.missed.set(group, taskOf);
  }

  /** For the transport: the task for records that retention has deleted before the group read them. */
  missedTask(group: string, missed: MissedRecords): Task | undefined {
    return this.missed.get(group)?.(missed);
  }

  /**
   * Calls back before this process leaves the group, so that others get its partitions. Tasks that are settled when the promise resolves are done; it is
   * awaited for a second.
   */
  beforeHandOver(group: string, handOver: () => Promise<void>): void {
    this.handOvers.set(group, handOver);
  }

  /** For the transport, before it leaves the group. */
  async handOver(group: string): Promise<void> {
    await this.handOvers.get(group)?.();
  }

  /**
   * Calls back when a partition of a topic has another log than before: Kafka has lost records, and a group may not have read all of them. Until the
   * promise of the listener resolves, the replacement is recognised again after a crash.
   */
  onReplaced(listener: (topic: string) => Promise<void>): void {
    this.replacedListeners.push(listener);
  }

  /** For the transport: a partition of the topic has another log than before. Resolves when what depends on its records is repaired. */
  async replaced(topic: string): Promise<void> {
    await Promise.all(this.replacedListeners.map((listener) => listener(topic)));
  }

  /** How much of its capacity for unfinished work the group uses; from 1 on, it reads no more records. */
  load(group: string): number {
    return this.laned.get(group)?.load ?? 0;
  }

  /** Runs a task in turn with those of the group's records, and again until it does not throw. It does not count in `load`. Throws Unavailable before the consumer starts. */
  push(group: string, task: Task): void {
    this.started(group).push(task);
  }

  /**
   * Runs a task of a partition as long as it belongs to this process, in turn with those of the group's records. Resolves to false if it has not been done
   * here. Throws Unavailable before the consumer starts.
   */
  pushFor(group: string, { topic, partition }: { topic: string; partition: number }, task: Task): Promise<boolean> {
    return this.started(group).pushFor(topic, partition, task);
  }

  /** The number of unfinished tasks of a tenant of the group. */
  outstandingOf(group: string, tenant: string): number {
    return this.laned.get(group)?.outstandingOf(tenant) ?? 0;
  }

  /** How far a group has handled each of its partitions that are assigned to this process. */
  positionsOf(group: string): (GroupPosition & ReadPosition)[] {
    return this.laned.get(group)?.positions() ?? [];
  }

  /**
   * The offsets of the records of a partition that the group has not done, in ascending order, and at last that of the next one, which has not begun. None if
   * the partition is not assigned to this process.
   */
  undoneOf(group: string, { topic, partition }: { topic: string; partition: number }): number[] {
    return this.laned.get(group)?.undoneOf(topic, partition) ?? [];
  }

  /** Calls `run` in a lane of the group's consumer, in turn with its tasks, and returns the result. An error goes to the caller and is not retried. */
  runInLane<T>(group: string, lane: Omit<Task, 'run'>, run: (release: () => void) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.push(group, { ...lane, run: (release) => run(release).then(resolve, reject) }));
  }

  /** Whether the group begins nothing more. */
  isStopping(group: string): boolean {
    return this.laned.get(group)?.isStopping ?? true;
  }

  /** Starts a consumer that is `onDemand`; resolves when it has joined its group. */
  async start(group: string): Promise<void> {
    const make = this.onDemand.get(group);
    if (!make) throw new Error(`unknown consumer ${group}`);
    if (this.running.has(group)) throw new Error(`the consumer ${group} is already running`);
    const consumer = make();
    this.running.set(group, consumer);
    await consumer.start();
  }

  /** Stops a consumer that is `onDemand`, if it is running. */
  async stop(group: string): Promise<void> {
    const consumer = this.running.get(group);
    this.running.delete(group);
    await consumer?.stop();
  }

  private started(group: string): LaneConsumer {
    const consumer = this.laned.get(group);
    if (!consumer) throw new Unavailable('the service is starting');
    return consumer;
  }
}
