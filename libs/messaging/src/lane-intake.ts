import type { KafkaMessage } from 'kafkajs';
import { Lanes, type LanesOptions, type Task } from './lanes.js';
import { LogRecord } from './log-record.js';
import { type Progress, united, Watermark } from './watermark.js';

export interface LaneIntakeOptions extends LanesOptions {
  /** Above this many outstanding tasks no more records are taken. */
  maxOutstanding: number;
  /**
   * Says for each record of a batch what is to be done; nothing is a good answer. It's awaited before the next batch of
   * the partition, so one SQL statement can serve the whole batch.
   */
  plan(records: LogRecord[]): Task[][] | Promise<Task[][]>;
}

/** How far a partition is done, as it's committed. */
export interface PartitionProgress extends Progress {
  topic: string;
  partition: number;
}

/** Progress that is to be committed. */
export interface Uncommitted extends PartitionProgress {
  /** Says that it is. */
  done(): void;
}

/** A partition that this process has been given. */
class Assigned {
  readonly watermark: Watermark;
  /** How many records had ended by the last commit. */
  endingsCommitted = -1;
  /** Another process has it now. */
  lost = false;

  constructor(
    readonly topic: string,
    readonly partition: number,
    /** As the group knows it: what has ended there isn't done again. */
    public known: Progress,
  ) {
    this.watermark = new Watermark(known);
  }

  /** Whether that is still to be done, and by this process. */
  isDue(offset: number): boolean {
    return !this.lost && !hasEnded(this.known, offset);
  }

  progress(): Progress {
    const own = this.watermark.progress();
    // until the records are read again of which the group knows that they have ended
    return topOf(this.known) > own.offset ? united(own, this.known) : own;
  }
}

const topOf = ({ offset, ended }: Progress): number => ended.at(-1)?.to ?? offset;

const hasEnded = (known: Progress, offset: number): boolean =>
  offset < known.offset || (offset < topOf(known) && known.ended.some(({ from, to }) => offset >= from && offset < to));

const place = (topic: string, partition: number): string => `${topic}/${partition}`;

/**
 * Turns records of assigned partitions into tasks in lanes and knows how far each partition is done: the part of a
 * lane consumer that knows no Kafka, so that crashes and rebalances can be simulated. A rebalance goes so:
 *
 *   suspend ──► keepOnly ──► assign ──► resume
 *    │           │            └ what is committed is known: what has ended elsewhere isn't done again
 *    │           └ these partitions are ours: what waits of the others is dropped
 *    └ the partitions may go elsewhere: nothing more is begun
 */
export class LaneIntake {
  readonly lanes: Lanes;
  private partitions = new Map<string, Assigned>();
  private suspended: PromiseWithResolvers<void> | undefined;
  private closed = false;
  /** Whether it's known what is committed of the partitions: what is known here alone may be older. */
  isAssigned = false;

  constructor(private readonly options: LaneIntakeOptions) {
    this.lanes = new Lanes(options);
  }

  /** Begins no task of a record. What is under way goes on, and so do tasks that are put into the lanes directly. */
  suspend(): void {
    this.suspended ??= Promise.withResolvers();
  }

  resume(): void {
    this.suspended?.resolve();
    this.suspended = undefined;
  }

  /**
   * For good: begins no task of a record any more. Those that wait leave their lanes undone, so that their records are not counted as done and
   * another process takes them; a task that fails is not repeated.
   */
  close(): void {
    this.closed = true;
    this.resume();
  }

  /** The group has given us these partitions and no others; what is committed of them is told by `assign`. */
  keepOnly(given: { topic: string; partition: number }[]): void {
    this.isAssigned = false;
    const kept = new Set(given.map(({ topic, partition }) => place(topic, partition)));
    for (const [key, assigned] of this.partitions) {
      if (kept.has(key)) continue;
      assigned.lost = true;
      this.partitions.delete(key);
    }
  }

  /** This is committed of the partitions that we have been given. */
  assign(given: PartitionProgress[]): void {
    for (const { topic, partition, ...known } of given) {
      const key = place(topic, partition);
      const before = this.partitions.get(key);
      // what has begun here goes on, unless the partition was elsewhere and moved on there
      if (before && before.watermark.next >= known.offset) Object.assign(before, { known, endingsCommitted: -1 });
      else {
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

  /** Plans the messages of a partition and puts their tasks into the lanes. Throws what `plan` throws, having begun nothing. */
  async take(topic: string, partition: number, messages: KafkaMessage[]): Promise<void> {
    const assigned = this.partitions.get(place(topic, partition));
    if (!assigned) throw new Error(`partition ${partition} of ${topic} is not assigned`);
    const { watermark } = assigned;
    let clock = watermark.clock;
    // after a rebalance a partition is read again from its committed position
    const records = messages
      .filter((message) => Number(message.offset) >= watermark.next)
      .map((message) => new LogRecord(topic, partition, message, (clock = Math.max(clock, Number(message.timestamp)))));
    const due = records.filter(({ offset }) => assigned.isDue(offset));
    const plans = due.length === 0 ? [] : await this.options.plan(due);
    const planned = new Map(due.map((record, index) => [record, plans[index] ?? []]));
    for (const record of records) {
      const { end } = watermark.begin(record.offset, record.clock);
      const tasks = planned.get(record) ?? [];
      let left = tasks.length;
      if (left === 0) end();
      for (const task of tasks) {
        const due = this.ifDue(assigned, record.offset, task);
        this.lanes.push(due.task, () => due.isDone() && --left === 0 && end());
      }
    }
  }

  /** Whether more records may be taken. */
  get hasRoom(): boolean {
    return this.lanes.outstanding < this.options.maxOutstanding;
  }

  room(): Promise<void> {
    return this.lanes.room(this.options.maxOutstanding);
  }

  /** What has moved on since it was committed last. */
  uncommitted(): Uncommitted[] {
    if (!this.isAssigned) return [];
    return [...this.partitions.values()]
      .filter(({ watermark, endingsCommitted }) => watermark.endings > endingsCommitted)
      .map((assigned) => {
        const { topic, partition, watermark } = assigned;
        const { endings } = watermark;
        return { topic, partition, ...assigned.progress(), done: () => void (assigned.endingsCommitted = endings) };
      });
  }

  /** The task, dropped when it isn't ours to do any more as its turn comes. `isDone`: false when it was left to another process. */
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
