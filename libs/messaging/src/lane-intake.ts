import type { KafkaMessage } from 'kafkajs';
import { JointPlans, type Plan } from './joint-plans.js';
import { Lanes, type LanesOptions, type Task } from './lanes.js';
import { type Continuation, type Fetched, LogContinuity } from './log-continuity.js';
import { LogRecord } from './log-record.js';
import { clockAfter, type Position, type Progress, united, Watermark } from './watermark.js';

export interface LaneIntakeOptions extends LanesOptions {
  /** With this many outstanding tasks, no more records are accepted. Each partition may be planning one chunk beyond it. */
  maxOutstanding: number;
  /**
   * Decides the tasks for each record; there may be none. The records are of one topic, and in order within their partitions. One call is in
   * progress at a time, and serves all partitions that have new records, so that one SQL statement is enough for them.
   */
  plan: Plan;
}

/** Records that are planned together, unless one batch has more. */
const PLANNED_TOGETHER = 500;

/** The progress of a partition, to be committed. */
export interface PartitionProgress extends Progress {
  topic: string;
  partition: number;
}

/** The progress to commit. */
export interface Uncommitted extends PartitionProgress {
  /** Reports that it has been committed. */
  done(): void;
}

/** A partition that is assigned to this process. */
class Assigned {
  readonly watermark: Watermark;
  readonly continuity: LogContinuity;
  /** The number of finished records at the last commit. */
  endingsCommitted = -1;
  /** The time of the database in the last commit. */
  private stampCommitted = 0;
  private isStampDue = false;
  /** Another process owns it now. */
  lost = false;

  constructor(
    readonly topic: string,
    readonly partition: number,
    /** The progress that the group has committed: records that are done there are not repeated. */
    public known: Progress,
  ) {
    this.watermark = new Watermark(known);
    this.continuity = new LogContinuity(known);
  }

  /** Whether the record must still be handled, and by this process. */
  isDue(offset: number): boolean {
    return !this.lost && !hasEnded(this.known, offset);
  }

  isUncommitted(stamp: number): boolean {
    return this.watermark.endings > this.endingsCommitted || (this.isStampDue && stamp > this.stampCommitted);
  }

  committed(endings: number, stamp: number): void {
    this.isStampDue = endings > this.endingsCommitted;
    this.endingsCommitted = endings;
    this.stampCommitted = stamp;
  }

  progress(): Progress {
    const own = this.watermark.progress();
    // until we have re-read the records that the group already knows are done
    return topOf(this.known) > own.offset ? united(own, this.known) : own;
  }
}

const topOf = ({ offset, ended }: Progress): number => ended.at(-1)?.to ?? offset;

const hasEnded = (known: Progress, offset: number): boolean =>
  offset < known.offset || (offset < topOf(known) && known.ended.some(({ from, to }) => offset >= from && offset < to));

const place = (topic: string, partition: number): string => `${topic}/${partition}`;

/**
 * Turns records of assigned partitions into tasks in lanes, and tracks the progress of each partition. It is the part of a
 * lane consumer that does not use Kafka, so that crashes and rebalances can be simulated. A rebalance has these steps:
 *
 *   suspend ──► keepOnly ──► assign ──► resume
 *    │           │            └ the committed progress is known: records that are done elsewhere are not repeated
 *    │           └ these partitions are ours: waiting tasks of the others are dropped
 *    └ the partitions may move to other processes: no further task is started
 */
export class LaneIntake {
  readonly lanes: Lanes;
  private readonly plans: JointPlans;
  private partitions = new Map<string, Assigned>();
  private suspended: PromiseWithResolvers<void> | undefined;
  private closed = false;
  /** Whether the committed progress of the partitions is known: our own may be older. */
  isAssigned = false;

  constructor(private readonly options: LaneIntakeOptions) {
    this.lanes = new Lanes(options);
    this.plans = new JointPlans((records) => options.plan(records), PLANNED_TOGETHER);
  }

  /** Starts no task of a record. Tasks in progress continue, and so do tasks that are put into the lanes directly. */
  suspend(): void {
    this.suspended ??= Promise.withResolvers();
  }

  resume(): void {
    this.suspended?.resolve();
    this.suspended = undefined;
  }

  /**
   * Permanent: starts no task of a record any more. Waiting tasks leave their lanes unfinished, so their records do not count as done and
   * another process takes them. A failing task is not repeated.
   */
  close(): void {
    this.closed = true;
    this.resume();
  }

  /** The group has assigned exactly these partitions to us; `assign` delivers their committed progress. */
  keepOnly(given: { topic: string; partition: number }[]): void {
    this.isAssigned = false;
    const kept = new Set(given.map(({ topic, partition }) => place(topic, partition)));
    for (const [key, assigned] of this.partitions) {
      if (kept.has(key)) continue;
      assigned.lost = true;
      this.partitions.delete(key);
    }
  }

  /** Delivers the committed progress of the assigned partitions. */
  assign(given: PartitionProgress[]): void {
    for (const { topic, partition, ...known } of given) {
      const key = place(topic, partition);
      const before = this.partitions.get(key);
      // tasks that have started here continue, unless another process has owned the partition meanwhile and advanced it
      if (before && before.watermark.next >= known.offset) {
        Object.assign(before, { known, endingsCommitted: -1 });
        before.continuity.doubt();
      } else {
        if (before) before.lost = true;
        this.partitions.set(key, new Assigned(topic, partition, known));
      }
    }
    this.isAssigned = true;
  }

  /** Whether the partition is assigned. */
  has(topic: string, partition: number): boolean {
    return this.partitions.has(place(topic, partition));
  }

  /** The clock of the last record of a partition that has been taken, in ms. */
  clock(topic: string, partition: number): number {
    return this.assigned(topic, partition).watermark.clock;
  }

  /** The position of each assigned partition: every record below it is done. */
  positions(): PartitionProgress[] {
    return [...this.partitions.values()].map(({ topic, partition, watermark }) => ({ topic, partition, ...watermark.progress() }));
  }

  /**
   * Reads a partition again from the position that a restored database has, because the effects of the records from there on are lost. Waiting tasks are
   * dropped and planned again; those in progress continue. A position beyond ours belongs to an earlier log, which the next fetch shows. False if the
   * partition is not ours, or is there already.
   */
  rewind({ topic, partition, ...position }: Position & { topic: string; partition: number }): boolean {
    const before = this.partitions.get(place(topic, partition));
    if (!before || (before.watermark.next === position.offset && before.watermark.isDone)) return false;
    before.lost = true;
    this.partitions.set(place(topic, partition), new Assigned(topic, partition, { ...position, ended: [] }));
    return true;
  }

  /** The logs may have been replaced. Returns the offsets from which to fetch in order to verify them. */
  doubt(): { topic: string; partition: number; from: number }[] {
    return [...this.partitions.values()].map(({ topic, partition, continuity }) => {
      continuity.doubt();
      return { topic, partition, from: continuity.from };
    });
  }

  /**
   * Says what a fetch of an assigned partition means. If the log has been replaced, the partition is read from its beginning, with a new clock, and
   * its next commit moves the group's position back. Tasks of the old records continue.
   */
  judge(topic: string, partition: number, fetched: Fetched): Continuation {
    const assigned = this.assigned(topic, partition);
    const continuation = assigned.continuity.judge(fetched);
    // what is done above the position may be records of another log
    if (continuation.kind === 'continues' && continuation.unverified) assigned.known = { ...assigned.known, ended: [] };
    if (continuation.kind === 'replaced')
      this.partitions.set(place(topic, partition), new Assigned(topic, partition, { offset: 0, clock: 0, ended: [] }));
    return continuation;
  }

  /** Plans the messages of a partition and puts their tasks into the lanes. If `plan` throws, nothing is started and the error is passed on. */
  async take(topic: string, partition: number, messages: KafkaMessage[]): Promise<void> {
    const assigned = this.assigned(topic, partition);
    const { watermark } = assigned;
    let clock = watermark.clock;
    // after a rebalance, a partition is read again from its committed offset
    const records = messages
      .filter((message) => Number(message.offset) >= watermark.next)
      .map((message) => new LogRecord(topic, partition, message, (clock = clockAfter(clock, Number(message.timestamp)))));
    const due = records.filter(({ offset }) => assigned.isDue(offset));
    const plans = due.length === 0 ? [] : await this.plans.plan(topic, due);
    const planned = new Map(due.map((record, index) => [record, plans[index] ?? []]));
    for (const record of records) {
      const { end } = watermark.begin(record.offset, record.timestamp);
      assigned.continuity.took(record.offset, record.timestamp);
      const tasks = planned.get(record) ?? [];
      let left = tasks.length;
      if (left === 0) end();
      for (const task of tasks) {
        const due = this.ifDue(assigned, record.offset, task);
        this.lanes.push(due.task, () => due.isDone() && --left === 0 && end());
      }
    }
  }

  /** Whether more records are accepted. */
  get hasRoom(): boolean {
    return this.lanes.outstanding < this.options.maxOutstanding;
  }

  /** Resolves when more records may be accepted. */
  room(): Promise<void> {
    return this.lanes.room(this.options.maxOutstanding);
  }

  /**
   * The progress since the last commit. `stamp`: the time of the database (restores.ts). A commit is repeated once with a later time, because a backup
   * that was made at its own time need not contain its effects.
   */
  uncommitted(stamp = 0): Uncommitted[] {
    if (!this.isAssigned) return [];
    return [...this.partitions.values()]
      .filter((assigned) => assigned.isUncommitted(stamp))
      .map((assigned) => {
        const { topic, partition, watermark } = assigned;
        const { endings } = watermark;
        return { topic, partition, ...assigned.progress(), done: () => assigned.committed(endings, stamp) };
      });
  }

  private assigned(topic: string, partition: number): Assigned {
    const assigned = this.partitions.get(place(topic, partition));
    if (!assigned) throw new Error(`partition ${partition} of ${topic} is not assigned`);
    return assigned;
  }

  /** The task, dropped if it is no longer ours when its turn comes. `isDone`: false if it is left to another process. */
  private ifDue(assigned: Assigned, offset: number, task: Task): { task: Task; isDone(): boolean } {
    let begun = false;
    let left = false;
    const run = async () => {
      while (!begun && this.suspended) await this.suspended.promise;
      if (!begun && this.closed) left = true;
      if (!begun && (left || !assigned.isDue(offset))) return task.drop?.();
      begun = true;
      try {
        await task.run();
      } catch (error) {
        if (!this.closed) throw error;
        left = true;
      }
    };
    return { task: { lane: task.lane, group: task.group, run }, isDone: () => !left };
  }
}
