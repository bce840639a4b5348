import type { Consumer, EachBatchPayload } from 'kafkajs';
import { kafkaName } from '#contracts';
import type { Log } from '#observability';
import { committedProgress, type Position, progressMetadata } from './watermark.js';
import { oldestRecord, SESSION_MS, sleep, unrefSleep, WatchedConsumer } from './consumer-life.js';
import { eachSecond } from './each-second.js';
import { Gathering } from './gathering.js';
import type { ConsumerSettings } from './handlers.js';
import { isNoMember } from './kafka-errors.js';
import type { KafkaClient } from './kafka.js';
import { withEmptyBatches } from './kafkajs-groups.js';
import { LogEnds } from './log-ends.js';
import { fetchedOf, hasNoRecords, reportMissed, reportReplaced } from './log-continuity.js';
import { LaneIntake, type LaneIntakeOptions, type PartitionProgress, type ReadPosition } from './lane-intake.js';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';
import { Membership } from './membership.js';
import { type Committed, type GroupPosition, NO_RESTORES, type Restores } from './restores.js';

export interface LaneConsumerOptions extends LaneIntakeOptions, Pick<ConsumerSettings, 'commitEveryMs' | 'gatherMs' | 'vital'> {
  group: string;
  topics: string[];
  /** Called when partitions were assigned, before their records come: other processes may have handled some of them. */
  onAssigned?(): void;
  /**
   * Called when a partition of the topic has another log than before, and is read from its beginning. Until the promise resolves, the group keeps its position
   * in the log before.
   */
  onReplaced?(topic: string): Promise<void>;
  /** Called before it leaves the group. Tasks that are settled when it resolves, or after a second, are done. */
  handOver?(): Promise<void>;
  /** Recognises a restored database, whose position is then older than the committed one. */
  restores?: Restores;
}

const COMMIT_EVERY_MS = 100;
const ASSIGN_PAUSE_MS = 500;
const HAND_OVER_MS = 1000;
/** How long a stop waits for the end of a rebalance, to commit finished records. */
const ASSIGNED_IN_MS = 2000;
/** This many consecutive failed commits are worth a log line. */
const MANY_FAILURES = 100;
/**
 * In ms. If the process stands still or a plan takes longer than this, the group may have removed the member: kafkajs sends no heartbeats meanwhile, and the
 * last one may be some seconds old.
 */
const LONG_PAUSE_MS = SESSION_MS / 2;
/** Records that the intake gets together; it may plan them in several parts. */
const CHUNK = 500;
/**
 * How long the records of some partitions, which wait for capacity, may delay the others, in ms: kafkajs fetches again when those of all partitions are
 * taken. The remaining records are fetched again.
 */
const TURN_MS = 50;
const LOOK_MS = 10;
/** The back-off of a partition whose records cannot be planned, such as because the database is down. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 3000;

/**
 * Keyed lanes over a consumer: `plan` turns records into tasks, different lanes run concurrently, and progress is committed
 * periodically: the offset below which every record is done, plus the finished records above it, in the metadata.
 * At least once: a crash repeats unfinished work, and work that finished since the last commit. A task that throws is retried
 * until it succeeds.
 *
 * The metadata also contains the clock, so that event ids are the same after a restart.
 */
export class LaneConsumer {
  private readonly intake: LaneIntake;
  private readonly membership: Membership;
  private readonly watched: WatchedConsumer;
  private readonly consumer: Consumer;
  private readonly group: string;
  private readonly restores: Restores;
  private readonly name: { group: string };
  private readonly gathering: Gathering;
  private readonly ends: LogEnds;
  /** Counts the assignments. */
  private assignment = 0;
  private timer: NodeJS.Timeout | undefined;
  private stopEachSecond: () => void = () => {};
  /** The partitions whose records are being taken. */
  private taking = 0;
  /** The next pause of each partition whose records could not be planned, in ms. */
  private readonly pauses = new Map<string, number>();
  /** Whether it has no work, and ticks once per second, which is less than LONG_PAUSE_MS. */
  private isResting = false;
  private committing: Promise<void> = Promise.resolve();
  /** In progress, or waiting for the one before. */
  private commits = 0;
  private failedCommits = 0;
  private stopping = false;
  /** Whether it begins no more tasks. Until then, also while it hands over, another process may get its partitions. */
  private closed = false;
  private hasLeft = false;

  constructor(
    private readonly kafka: KafkaClient,
    private readonly log: Log,
    private readonly options: LaneConsumerOptions,
  ) {
    this.name = { group: options.group };
    this.restores = options.restores ?? NO_RESTORES;
    this.gathering = new Gathering(options.gatherMs ?? 0);
    this.ends = new LogEnds(kafka, log, (...partition) => this.endsEarly(...partition));
    this.intake = new LaneIntake({ ...options, plan: (records) => this.plan(records) });
    this.membership = new Membership(this.intake, LONG_PAUSE_MS);
    this.group = kafkaName(options.group);
    this.watched = new WatchedConsumer(kafka, this.group, log, { vital: options.vital, onInterruption: () => this.reverify() });
    this.consumer = this.watched.consumer;
  }

  /** How much of its capacity for unfinished work is in use; from 1 on, it reads no more records. */
  get load(): number {
    return this.intake.load;
  }

  /** Whether it is stopping. */
  get isStopping(): boolean {
    return this.stopping;
  }

  /** The positions of its partitions: every record below is done, and its effects are stored. None while another process may have newer ones. */
  storedPositions(): GroupPosition[] {
    if (!this.options.restores || this.hasLeft) return [];
    // the caller's timer may be the first to run after the process stood still
    this.noticeStandstill();
    if (!this.membership.isCertain) return [];
    return this.positions().flatMap(({ withheld, ...position }) => (withheld ? [] : [position]));
  }

  /** The same, whether they are stored or not. */
  positions(): (GroupPosition & ReadPosition)[] {
    return this.intake.positions().map((position) => ({ ...this.name, ...position }));
  }

  /** See `LaneIntake.undoneOf`. */
  undoneOf(topic: string, partition: number): number[] {
    return this.intake.undoneOf(topic, partition);
  }

  /** Returns to these positions, because the database has lost the effects of later records; without a position, to the beginning. */
  rewind(positions: GroupPosition[]): void {
    if (!this.options.restores) return;
    const { group } = this.options;
    for (const { topic, partition } of this.intake.positions()) {
      const stored = positions.find((each) => each.group === group && each.topic === topic && each.partition === partition);
      const { offset, clock, timestamp }: Position = stored ?? { offset: 0, clock: 0 };
      if (!this.intake.rewind({ topic, partition, offset, clock, timestamp })) continue;
      this.log.warn({ group, topic, partition, offset }, 'lane.rewound');
      this.watched.seek(topic, partition, timestamp === undefined ? offset : offset - 1);
    }
  }

  /** Runs a task in its lane, in turn with those of the records. */
  push(task: Task): void {
    this.intake.push(task);
  }

  /** Runs a task of a partition in its lane; see `LaneIntake.pushFor`. */
  pushFor(topic: string, partition: number, task: Task): Promise<boolean> {
    return this.intake.pushFor(topic, partition, task);
  }

  /** The number of unfinished tasks of a tenant. */
  outstandingOf(tenant: string): number {
    return this.intake.lanes.outstandingOf(tenant);
  }

  /** Joins the group; resolves when the first fetch is in progress. */
  async start(): Promise<void> {
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      void this.assign(payload.memberAssignment);
    });
    // the partitions may go to another member, which repeats uncommitted work
    this.consumer.on(this.consumer.events.REBALANCING, ({ payload }) => {
      if (this.closed) return;
      if (payload.memberId) this.membership.rebalancing();
      else this.membership.left();
      void this.commit();
    });
    // kafkajs leaves the group before it joins it again
    this.consumer.on(this.consumer.events.CRASH, () => this.closed || this.membership.left());
    await this.watched.start(this.options.topics, {
      fromBeginning: true,
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: withEmptyBatches((payload) => this.eachBatch(payload)),
    });
    if (this.stopping) return;
    this.membership.started();
    this.stopEachSecond = eachSecond(() => {
      oldestRecord.set({ group: this.group }, this.intake.oldestMs / 1000);
      if (this.isResting) this.tickAndSchedule();
    });
    this.scheduleTick();
  }

  /** Hands over, starts no more tasks, waits for those in progress, commits and leaves the group: another process takes over the rest. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.pause();
    const end = unrefSleep(this.kafka.drainMs);
    await Promise.race([this.options.handOver?.(), unrefSleep(HAND_OVER_MS)]);
    this.closed = true;
    this.membership.close();
    this.intake.close();
    await Promise.race([this.intake.lanes.waitUntilBelow(1), end]);
    clearTimeout(this.timer);
    this.stopEachSecond();
    oldestRecord.remove({ group: this.group });
    // nothing can be committed during a rebalance: finished work would be repeated
    for (let waited = 0; !this.intake.isAssigned && waited < ASSIGNED_IN_MS; waited += 50) await sleep(50);
    await this.restores.beforeLeaving();
    await this.commit();
    this.hasLeft = true;
    await this.watched.stop();
  }

  private pause(): void {
    try {
      this.consumer.pause(this.options.topics.map((topic) => ({ topic })));
    } catch {
      // it has crashed and waits to be restarted: there is nothing to pause
    }
  }

  private scheduleTick(): void {
    clearTimeout(this.timer);
    this.isResting = !this.intake.hasWork && !this.membership.isUnconfirmed;
    if (this.isResting) return;
    this.timer = setTimeout(() => this.tickAndSchedule(), this.options.commitEveryMs ?? COMMIT_EVERY_MS);
  }

  private tickAndSchedule(): void {
    this.tick();
    this.scheduleTick();
  }

  private tick(): void {
    this.noticeStandstill();
    // one that hangs must not leave a queue of others behind
    if (this.commits < 2) void this.commit();
  }

  private noticeStandstill(): void {
    const stoodStillMs = this.closed ? undefined : this.membership.tick();
    if (stoodStillMs !== undefined) this.log.warn({ ...this.name, ms: Math.round(stoodStillMs) }, 'lane.stood-still');
  }

  /** Reads the committed progress, with retries; a newer assignment makes the result obsolete. */
  private async assign(given: Record<string, number[]>): Promise<void> {
    const assignment = ++this.assignment;
    const { newestDoubt } = this.membership;
    this.pauses.clear();
    this.intake.keepOnly(Object.entries(given).flatMap(([topic, partitions]) => partitions.map((partition) => ({ topic, partition }))));
    for (;;) {
      try {
        const progress = await Promise.all((await this.committed(given)).map((each) => this.validPosition(each)));
        if (assignment !== this.assignment) return;
        this.options.onAssigned?.();
        this.intake.assign(progress);
        return this.membership.assigned(newestDoubt);
      } catch (error) {
        if (assignment !== this.assignment || this.stopping) return;
        this.log.warn({ ...this.name, err: error }, 'lane.not-assigned');
        await sleep(ASSIGN_PAUSE_MS);
      }
    }
  }

  /** The committed positions or, if the database was restored or nothing was committed, the positions that belong to its state. */
  private async validPosition({ databaseMs = 0, isMissing, ...progress }: Committed): Promise<PartitionProgress> {
    const { topic, partition } = progress;
    const at = { ...this.name, topic, partition };
    const restored = await (isMissing ? this.restores.storedPosition(at) : this.restores.positionFor(at, databaseMs));
    if (!restored) return progress;
    this.watched.seek(topic, partition, restored.timestamp === undefined ? restored.offset : restored.offset - 1);
    return { topic, partition, ...restored, ended: [] };
  }

  private async committed(given: Record<string, number[]>): Promise<Committed[]> {
    const topics = Object.keys(given);
    const response = topics.length === 0 ? [] : await this.kafka.withAdmin((admin) => admin.fetchOffsets({ groupId: this.group, topics }));
    return Object.entries(given).flatMap(([topic, partitions]) => {
      const found = new Map(response.find((each) => each.topic === topic)?.partitions.map((each) => [each.partition, each]));
      return partitions.map((partition) => {
        const { offset, metadata } = found.get(partition) ?? {};
        if (offset === undefined) throw new Error(`Kafka returned no committed offset for partition ${partition} of ${topic}`);
        return { topic, partition, isMissing: Number(offset) < 0, ...committedProgress(Number(offset), metadata ?? null) };
      });
    });
  }

  private async eachBatch(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload;
    if (hasNoRecords(batch)) return this.ends.check(batch, this.intake.next(batch.topic, batch.partition));
    if (batch.isEmpty()) return this.skipHidden(payload);
    this.taking += 1;
    try {
      if (await this.takeBatch(payload)) await this.gathering.rest(batch);
    } finally {
      this.taking -= 1;
    }
  }

  /**
   * While a plan takes long, the group may assign the partitions to another process, which handles the records. Heartbeats during the plan would keep them
   * here, even if the plan never ends.
   */
  private async plan(records: LogRecord[]): Promise<Task[][]> {
    this.membership.planning();
    this.watched.planning = true;
    try {
      return await this.options.plan(records);
    } finally {
      this.membership.planned();
      this.watched.planning = false;
    }
  }

  /** All of the records are hidden, and kafkajs continues behind them. */
  private skipHidden({ batch, isRunning, isStale }: EachBatchPayload): void {
    this.watched.recordLag(batch);
    if (this.stopping || !isRunning() || isStale() || this.intake.next(batch.topic, batch.partition) === undefined) return;
    if (this.verifyFetch(batch)) this.intake.skipHidden(batch.topic, batch.partition, fetchedOf(batch));
  }

  /** Returns false if records are left. */
  private async takeBatch(payload: EachBatchPayload): Promise<boolean> {
    const { batch, resolveOffset, heartbeat, isRunning, isStale } = payload;
    const { assignment } = this;
    this.watched.recordLag(batch);
    // a batch may outlive the assignment under which it was fetched
    const isOver = () => this.stopping || !isRunning() || isStale() || assignment !== this.assignment;
    while (!this.intake.isAssigned) {
      if (isOver()) return false;
      await sleep(5);
      await heartbeat();
    }
    if (!this.intake.has(batch.topic, batch.partition) || !this.verifyFetch(batch)) return false;
    const end = performance.now() + TURN_MS;
    // while the records of all partitions wait, no other could be fetched
    const isTurnOver = () => isOver() || (performance.now() > end && this.taking < this.intake.assigned);
    for (let start = 0; start < batch.messages.length; start += CHUNK) {
      const chunk = batch.messages.slice(start, start + CHUNK);
      for (;;) {
        // the plan before was progress: several short ones must not be like a long one
        await heartbeat();
        while (!this.intake.hasCapacity && !isTurnOver()) {
          await sleep(LOOK_MS);
          await heartbeat();
        }
        if (isTurnOver()) {
          await heartbeat();
          return false;
        }
        try {
          const isTaken = await this.intake.take(batch.topic, batch.partition, chunk);
          if (this.isResting) this.scheduleTick();
          if (isTaken) break;
        } catch (error) {
          this.log.warn({ ...this.name, topic: batch.topic, partition: batch.partition, err: error }, 'lane.batch-failed');
          if (!isOver()) this.fetchLater(payload);
          return false;
        }
      }
      this.pauses.delete(`${batch.topic}/${batch.partition}`);
      const last = chunk.at(-1);
      if (last) resolveOffset(last.offset);
    }
    // while the last records were planned, the partition may have been rewound, or assigned again
    if (!isOver()) this.intake.skipHidden(batch.topic, batch.partition, fetchedOf(batch));
    await heartbeat();
    return true;
  }

  /** Fetches the remaining records again after a pause, twice as long as the one before. The other partitions are read meanwhile. */
  private fetchLater({ batch: { topic, partition }, pause }: EachBatchPayload): void {
    const key = `${topic}/${partition}`;
    const ms = this.pauses.get(key) ?? FIRST_PAUSE_MS;
    this.pauses.set(key, Math.min(2 * ms, MAX_PAUSE_MS));
    const resume = pause();
    // after the pause of all partitions by a stop, it would end that one
    setTimeout(() => this.stopping || resume(), ms).unref();
  }

  private reverify(): void {
    for (const { topic, partition, from } of this.intake.reverify()) this.watched.seek(topic, partition, from);
  }

  /** Whether these are the next records of the partition; if not, the right ones are fetched next. */
  private verifyFetch(batch: EachBatchPayload['batch']): boolean {
    const { topic, partition } = batch;
    const fetched = fetchedOf(batch);
    const { fetchedOffset, highWatermark } = fetched;
    const continuation = this.intake.check(topic, partition, fetched);
    const at = { ...this.name, topic, partition, fetched: fetchedOffset };
    if (continuation.kind === 'continues') {
      const { missed } = continuation;
      if (missed > 0) reportMissed(this.log, { ...at, expected: fetchedOffset - missed, missed });
      return true;
    }
    if (continuation.kind === 'replaced') this.replaced({ ...at, end: highWatermark });
    this.watched.seek(topic, partition, continuation.kind === 'refetch' ? continuation.from : 0);
    return false;
  }

  /** The partition ends below its next record. */
  private endsEarly(topic: string, partition: number, end: number, next: number): void {
    if (!this.intake.endsEarly(topic, partition, end, next)) return;
    this.replaced({ ...this.name, topic, partition, expected: next, fetched: end, end });
    this.watched.seek(topic, partition, 0);
  }

  private replaced(at: Parameters<typeof reportReplaced>[1] & { partition: number }): void {
    reportReplaced(this.log, at);
    const repaired = this.options.onReplaced?.(at.topic);
    if (repaired) this.intake.withhold(at.topic, at.partition, repaired);
  }

  private commit(): Promise<void> {
    this.commits += 1;
    this.committing = this.committing.then(() => this.commitNow()).finally(() => (this.commits -= 1));
    return this.committing;
  }

  private async commitNow(): Promise<void> {
    const { assignment } = this;
    const { databaseMs } = this.restores;
    const { isUnconfirmed, newestDoubt } = this.membership;
    const uncommitted = this.intake.uncommitted(databaseMs, isUnconfirmed);
    if (uncommitted.length === 0) {
      // another process cannot have got partitions of a member that has none
      if (this.intake.isAssigned && this.intake.assigned === 0) this.membership.confirmed(newestDoubt);
      return;
    }
    try {
      await this.consumer.commitOffsets(
        uncommitted.map((progress) => ({
          topic: progress.topic,
          partition: progress.partition,
          offset: String(progress.offset),
          metadata: progressMetadata(progress, databaseMs),
        })),
      );
      // a late commit may have overwritten what others had committed: commit everything again
      if (assignment === this.assignment) for (const progress of uncommitted) progress.done();
      this.failedCommits = 0;
      this.membership.confirmed(newestDoubt);
    } catch (error) {
      // another assignment shows that it is a member
      if (isNoMember(error) && assignment === this.assignment && !this.closed) this.membership.unconfirmed();
      // a rebalance or a broker that is down: the next tick commits again
      const level = ++this.failedCommits % MANY_FAILURES === 0 ? 'warn' : 'debug';
      this.log[level]({ ...this.name, failures: this.failedCommits, err: error }, 'lane.commit-failed');
    }
  }
}
