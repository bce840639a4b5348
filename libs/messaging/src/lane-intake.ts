import type { KafkaMessage } from 'kafkajs';
import type { ConsumerSettings } from './handlers.js';
import { PlanBatches, type Plan } from './plan-batches.js';
import { Lanes, type LanesOptions, type Task } from './lanes.js';
import { type Continuation, type Fetched, LogContinuity, type MissedRecords } from './log-continuity.js';
import { LogRecord } from './log-record.js';
import { clockAfter, type Position, type Progress, union, Watermark } from './watermark.js';

export interface LaneIntakeOptions extends LanesOptions, Required<Pick<ConsumerSettings, 'maxOutstanding'>> {
  /** The same as `maxOutstanding` for the bytes of the records that have outstanding tasks. */
  maxOutstandingBytes?: number;
  /**
   * Decides the tasks for each record; there may be none. The records are of one topic, and in order within their partitions. One call is in
   * progress at a time, and serves all partitions that have new records, so that one SQL statement is enough for them. It may return the tasks of the first records only, at least of one.
   */
  plan: Plan;
  /** Whether an error of `plan` does not depend on its records; default: no error is so. For any other, it is called again for each partition. */
  isTransient?(error: unknown): boolean;
  /**
   * Returns the task for records that retention has deleted before they were read. It belongs to the first record behind them: until it is done, the
   * committed position stays below the gap, and after a crash the gap is found again.
   */
  onMissed?(missed: MissedRecords): Task | undefined;
}

/** Planned together. */
const PLANNED = { records: 500, bytes: 8 * 1024 * 1024 };
/** A service has 512 MiB, and several consumers. */
const MAX_OUTSTANDING_BYTES = 64 * 1024 * 1024;

/** The progress of a partition, to be committed. */
export interface PartitionProgress extends Progress {
  topic: string;
  partition: number;
}

/** The position of a partition: every record below it is done. */
export interface ReadPosition extends Position {
  topic: string;
  partition: number;
  /** It must not be committed yet; see `LaneIntake.withhold`. */
  withheld: boolean;
}

/** The progress to commit. */
export interface Uncommitted extends PartitionProgress {
  /** Reports that it has been committed. */
  done(): void;
}

/** A partition that is assigned to this process. */
class AssignedPartition {
  readonly watermark: Watermark;
  readonly continuity: LogContinuity;
  /** The number of finished records at the last commit. */
  finishedAtCommit = -1;
  /** The time of the database in the last commit. */
  private databaseMsAtCommit = 0;
  private isLaterTimeDue = false;
  /** Another process owns it now. */
  lost = false;
  /** Its progress is not committed yet; see `LaneIntake.withhold`. */
  withheld = false;
  /** Retention has deleted these records, and no record behind them has been taken yet. */
  missed: MissedRecords | undefined;

  constructor(
    readonly topic: string,
    readonly partition: number,
    /** The progress that the group has committed: records that are done there are not repeated. */
    public committed: Progress,
    /** The progress in the log before, which has been lost. Until the first commit, it is that of the group. */
    public progressInLostLog?: Progress,
  ) {
    this.watermark = new Watermark(committed);
    this.continuity = new LogContinuity(committed);
  }

  /** Whether the record must still be handled, and by this process. */
  isDue(offset: number): boolean {
    return !this.lost && !isFinished(this.committed, offset);
  }

  /** Whether records have ended since the last commit. */
  get hasEnded(): boolean {
    return this.watermark.finished > this.finishedAtCommit;
  }

  isUncommitted(databaseMs: number): boolean {
    return this.hasEnded || (this.isLaterTimeDue && databaseMs > this.databaseMsAtCommit);
  }

  markCommitted(finished: number, databaseMs: number): void {
    this.progressInLostLog = undefined;
    this.isLaterTimeDue = finished > this.finishedAtCommit;
    this.finishedAtCommit = finished;
    this.databaseMsAtCommit = databaseMs;
  }

  progress(): Progress {
    const own = this.watermark.progress();
    // until we have re-read the records that the group already knows are done
    return topOf(this.committed) > own.offset ? union(own, this.committed) : own;
  }
}

const topOf = ({ offset, ended }: Progress): number => ended.at(-1)?.to ?? offset;

const isFinished = (committed: Progress, offset: number): boolean =>
  offset < committed.offset || (offset < topOf(committed) && committed.ended.some(({ from, to }) => offset >= from && offset < to));

const partitionKey = (topic: string, partition: number): string => `${topic}/${partition}`;

/**
 * Turns records of assigned partitions into tasks in lanes, and tracks the progress of each partition. It is the part of a
 * lane consumer that does not use Kafka, so that crashes and rebalances can be simulated. A rebalance has these steps:
 *
 *   suspend ──► keepOnly ──► assign ──► resume
 *    │           │            └ the committed progress is known: records that are done elsewhere are not repeated
 *    │           └ these partitions are assigned to us: waiting tasks of the others are dropped
 *    └ the partitions may move to other processes: no further task is started
 */
export class LaneIntake {
  readonly lanes: Lanes;
  private readonly plans: PlanBatches;
  private partitions = new Map<string, AssignedPartition>();
  private suspended: PromiseWithResolvers<void> | undefined;
  private closed = false;
  /** Of the records that have outstanding tasks. */
  private bytes = 0;
  /** The outstanding tasks that belong to no record. */
  private others = 0;
  /** Whether the committed progress of the partitions is known: our own may be older. */
  isAssigned = false;

  constructor(private readonly options: LaneIntakeOptions) {
    this.lanes = new Lanes(options);
    this.plans = new PlanBatches(
      (records) => options.plan(records),
      PLANNED,
      () => this.hasCapacity,
      options.isTransient,
    );
  }

  /** Starts no task of a record. Tasks in progress continue, and so do tasks that are put into the lanes directly. */
  suspend(): void {
    // waiting tasks leave, whatever happens
    if (!this.closed) this.suspended ??= Promise.withResolvers();
  }

  resume(): void {
    this.suspended?.resolve();
    this.suspended = undefined;
  }

  /**
   * Permanent: starts no task of a record any more. Waiting tasks that are not settled leave their lanes unfinished, so their records do not count as done
   * and another process takes them. A failing task is not repeated.
   */
  close(): void {
    this.closed = true;
    this.resume();
    this.lanes.endPauses();
  }

  /** The group has assigned exactly these partitions to us; `assign` delivers their committed progress. */
  keepOnly(given: { topic: string; partition: number }[]): void {
    this.isAssigned = false;
    const kept = new Set(given.map(({ topic, partition }) => partitionKey(topic, partition)));
    for (const [key, assigned] of this.partitions) {
      if (kept.has(key)) continue;
      assigned.lost = true;
      this.partitions.delete(key);
    }
  }

  /** Delivers the committed progress of the assigned partitions. */
  assign(given: PartitionProgress[]): void {
    for (const { topic, partition, ...committed } of given) {
      const key = partitionKey(topic, partition);
      const before = this.partitions.get(key);
      // tasks that have started here continue, unless another process has owned the partition meanwhile and advanced it, or this progress is that of a lost log
      if (before && !before.progressInLostLog && before.watermark.next >= committed.offset) {
        Object.assign(before, { committed, finishedAtCommit: -1 });
        before.continuity.reverify();
      } else {
        if (before) before.lost = true;
        this.partitions.set(key, new AssignedPartition(topic, partition, committed));
      }
    }
    this.isAssigned = true;
  }

  /** The number of assigned partitions. */
  get assigned(): number {
    return this.partitions.size;
  }

  /** Whether the partition is assigned. */
  has(topic: string, partition: number): boolean {
    return this.partitions.has(partitionKey(topic, partition));
  }

  /** How far each assigned partition has been handled. */
  positions(): ReadPosition[] {
    return [...this.partitions.values()].map(({ topic, partition, watermark, withheld }) => ({
      ...{ topic, partition, withheld },
      ...watermark.position,
    }));
  }

  /** The offsets of the records of a partition that are not done, in ascending order, and at last that of the next one, which has not begun. */
  undoneOf(topic: string, partition: number): number[] {
    return this.partitions.get(partitionKey(topic, partition))?.watermark.undone ?? [];
  }

  /**
   * Reads a partition again from the position that a restored database has, because the effects of the records from there on are lost. Waiting tasks are
   * dropped and planned again; those in progress continue. A position beyond our own belongs to an earlier log, which the next fetch shows. False if the
   * partition is not assigned to us, or is there already.
   */
  rewind({ topic, partition, ...position }: Position & { topic: string; partition: number }): boolean {
    const before = this.partitions.get(partitionKey(topic, partition));
    if (!before || (before.watermark.next === position.offset && before.watermark.isDone)) return false;
    before.lost = true;
    this.partitions.set(partitionKey(topic, partition), new AssignedPartition(topic, partition, { ...position, ended: [] }));
    return true;
  }

  /** The logs may have been replaced. Returns the offsets from which to fetch in order to verify them. */
  reverify(): { topic: string; partition: number; from: number }[] {
    return [...this.partitions.values()].map(({ topic, partition, continuity }) => {
      continuity.reverify();
      return { topic, partition, from: continuity.from };
    });
  }

  /**
   * Checks a fetch of an assigned partition. If the log has been replaced, the partition is read from its beginning, with a new clock, and
   * its next commit moves the group's position back. Tasks of the old records continue.
   */
  check(topic: string, partition: number, fetched: Fetched): Continuation {
    const assigned = this.partitionOf(topic, partition);
    const continuation = assigned.continuity.check(fetched);
    // finished records above the position may be records of another log
    if (continuation.kind === 'continues' && continuation.unverified) assigned.committed = { ...assigned.committed, ended: [] };
    if (continuation.kind === 'continues' && continuation.missed > 0) {
      const from = assigned.missed?.from ?? fetched.fetchedOffset - continuation.missed;
      assigned.missed = { partition, from, to: fetched.fetchedOffset, since: assigned.watermark.clock };
    }
    if (continuation.kind === 'replaced') this.replace(topic, partition);
    return continuation;
  }

  /** All visible records of a fetch that continues the log have been taken: continues behind the hidden ones. */
  skipHidden(topic: string, partition: number, fetched: Fetched): void {
    const assigned = this.partitions.get(partitionKey(topic, partition));
    if (!assigned) return;
    assigned.continuity.skipHidden(fetched);
    const { identified } = assigned.continuity;
    // the report of a gap waits for a visible record: until then, the position stays below the gap
    if (identified && !assigned.missed) assigned.watermark.skip(identified);
  }

  /** The offset of the next record. undefined: the partition is not assigned to us, or its position is not known yet. */
  next(topic: string, partition: number): number | undefined {
    return this.positioned(topic, partition)?.continuity.next;
  }

  /**
   * The partition ends at `end`, although its next record would have been `next`: it has another log, which is read as after `check`. False if the position
   * is another one by now.
   */
  endsEarly(topic: string, partition: number, end: number, next: number): boolean {
    if (!this.positioned(topic, partition)?.continuity.endsEarly(end, next)) return false;
    this.replace(topic, partition);
    return true;
  }

  /**
   * The progress in the new log of a partition is not committed until the promise resolves: after a crash, the replacement of its log is recognised again. Its
   * records are handled meanwhile.
   */
  withhold(topic: string, partition: number, until: Promise<void>): void {
    const assigned = this.partitionOf(topic, partition);
    assigned.withheld = true;
    void until.then(() => (assigned.withheld = false));
  }

  /** The partition, if it is assigned to us and its position is known. */
  private positioned(topic: string, partition: number): AssignedPartition | undefined {
    return this.isAssigned ? this.partitions.get(partitionKey(topic, partition)) : undefined;
  }

  private replace(topic: string, partition: number): void {
    const before = this.partitionOf(topic, partition);
    const lost = before.progressInLostLog ?? before.progress();
    this.partitions.set(partitionKey(topic, partition), new AssignedPartition(topic, partition, { offset: 0, clock: 0, ended: [] }, lost));
  }

  /**
   * Plans the messages of a partition and puts their tasks into the lanes. Returns false if the last ones, or all, are left: the call must be repeated with
   * the same messages when there is capacity. If `plan` throws, nothing is started and the error is passed on.
   */
  async take(topic: string, partition: number, messages: KafkaMessage[]): Promise<boolean> {
    const assigned = this.partitionOf(topic, partition);
    const { watermark } = assigned;
    let clock = watermark.clock;
    // after a rebalance, a partition is read again from its committed offset
    const records = messages
      .filter((message) => Number(message.offset) >= watermark.next)
      .map((message) => new LogRecord(topic, partition, message, (clock = clockAfter(clock, Number(message.timestamp)))));
    const due = records.filter(({ offset }) => assigned.isDue(offset));
    const plans = due.length === 0 ? [] : await this.plans.plan(topic, due);
    let next = 0;
    for (const record of records) {
      const isPlanned = record === due[next];
      if (isPlanned && next === plans.length) return false;
      const tasks = isPlanned ? (plans[next++] as Task[]) : [];
      // after a rebalance, the same records may have been fetched and planned twice at the same time
      if (record.offset < watermark.next) {
        for (const task of tasks) task.drop?.();
        continue;
      }
      this.begin(assigned, record, tasks);
    }
    return true;
  }

  /** The callbacks of a task live as long as it does. They are made here, where they cannot keep the whole batch in memory. */
  private begin(assigned: AssignedPartition, { offset, timestamp, bytes }: LogRecord, tasks: Task[]): void {
    const end = assigned.watermark.begin(offset, timestamp);
    assigned.continuity.advance(offset, timestamp);
    const dueTasks = tasks.map((task) => this.ifDue(assigned, offset, task));
    const report = assigned.missed && this.options.onMissed?.(assigned.missed);
    assigned.missed = undefined;
    // due even if the record itself is done
    if (report) dueTasks.push(this.ifDue(assigned, Infinity, report));
    let left = dueTasks.length;
    if (left === 0) return end();
    this.bytes += bytes;
    for (const due of dueTasks) {
      this.lanes.push(due.task, () => {
        if (due.isDone() && --left === 0) {
          this.bytes -= bytes;
          end();
        }
      });
    }
  }

  /** Runs a task that belongs to no record in its lane. It uses no capacity for records, however many there are: their number is up to the caller. */
  push(task: Task): void {
    this.others += 1;
    this.lanes.push(task, () => void (this.others -= 1));
  }

  /**
   * Runs a task that belongs to an assigned partition, but to none of its records: like theirs, it begins only while the partition is assigned to us.
   * Resolves to false if we have lost the partition before the task was done.
   */
  pushFor(topic: string, partition: number, task: Task): Promise<boolean> {
    const assigned = this.partitions.get(partitionKey(topic, partition));
    if (!assigned) {
      task.drop?.();
      return Promise.resolve(false);
    }
    // behind every record
    const due = this.ifDue(assigned, Infinity, task);
    return new Promise((resolve) => this.lanes.push(due.task, () => resolve(due.isDone() && !assigned.lost)));
  }

  /** How much of the capacity is in use; from 1 on, no more records are accepted. */
  get load(): number {
    const { maxOutstanding, maxOutstandingBytes = MAX_OUTSTANDING_BYTES } = this.options;
    return Math.max((this.lanes.outstanding - this.others) / maxOutstanding, this.bytes / maxOutstandingBytes);
  }

  /** Whether tasks are outstanding, or records have ended that are not committed yet. */
  get hasWork(): boolean {
    return this.lanes.outstanding > 0 || [...this.partitions.values()].some(({ hasEnded }) => hasEnded);
  }

  /** How long the oldest record that is not done has been in progress, in ms; 0 if all are done. */
  get oldestMs(): number {
    const now = performance.now();
    return Math.max(0, ...[...this.partitions.values()].map(({ watermark }) => now - (watermark.undoneSince ?? now)));
  }

  /** Whether more records are accepted. */
  get hasCapacity(): boolean {
    return this.load < 1;
  }

  /**
   * The progress since the last commit. `databaseMs`: the time of the database (restores.ts). A commit is repeated once with a later time, because a backup
   * that was made at its own time need not contain its effects. `all`: of every partition, changed or not, to find out whether the group accepts a commit.
   * A partition that is withheld is committed at its position in the lost log.
   */
  uncommitted(databaseMs = 0, all = false): Uncommitted[] {
    if (!this.isAssigned) return [];
    return [...this.partitions.values()].flatMap((assigned) => {
      const { topic, partition, watermark, withheld, progressInLostLog } = assigned;
      if (withheld) return all && progressInLostLog ? [{ topic, partition, ...progressInLostLog, done: () => {} }] : [];
      if (!all && !assigned.isUncommitted(databaseMs)) return [];
      const { finished } = watermark;
      return [{ topic, partition, ...assigned.progress(), done: () => assigned.markCommitted(finished, databaseMs) }];
    });
  }

  private partitionOf(topic: string, partition: number): AssignedPartition {
    const assigned = this.partitions.get(partitionKey(topic, partition));
    if (!assigned) throw new Error(`partition ${partition} of ${topic} is not assigned`);
    return assigned;
  }

  /** The task, which is dropped if we have lost its partition when its turn comes. `isDone`: false if another process has to do it. */
  private ifDue(assigned: AssignedPartition, offset: number, task: Task): { task: Task; isDone(): boolean } {
    let begun = false;
    let left = false;
    task.isOwn = () => begun || (!this.suspended && !this.closed && assigned.isDue(offset));
    const isSettled = () => task.isSettled?.() ?? false;
    const run = async (release: () => void) => {
      while (!begun && this.suspended && !isSettled()) await this.suspended.promise;
      if (this.closed && !isSettled()) left = true;
      // a task that runs a second time has failed
      if (begun) {
        if (left) return;
      } else if (left || !assigned.isDue(offset)) return task.drop?.();
      begun = true;
      try {
        await task.run(release);
      } catch (error) {
        if (!this.closed) throw error;
        left = true;
      }
    };
    return { task: { ...task, run }, isDone: () => !left };
  }
}
