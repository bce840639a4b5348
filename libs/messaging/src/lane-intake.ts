import type { KafkaMessage } from 'kafkajs';
import { Lanes, type LanesOptions, type Task } from './lanes.js';
import { LogRecord } from './log-record.js';
import { type Progress, Watermark } from './watermark.js';

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
  committed(): void;
}

/** A partition that this process has been given. */
class Assigned {
  readonly watermark: Watermark;
  /** How many records had ended by the last commit. */
  committed = 0;
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
}

function hasEnded({ offset: low, ended }: Progress, offset: number): boolean {
  if (offset < low) return true;
  const last = ended.at(-1);
  return last !== undefined && offset < last.to && ended.some(({ from, to }) => offset >= from && offset < to);
}

const place = (topic: string, partition: number): string => `${topic}/${partition}`;

/**
 * Turns records of assigned partitions into tasks in lanes and knows how far each partition is done: the part of a
 * lane consumer that knows no Kafka, so that crashes and rebalances can be simulated.
 */
export class LaneIntake {
  readonly lanes: Lanes;
  private partitions = new Map<string, Assigned>();

  constructor(private readonly options: LaneIntakeOptions) {
    this.lanes = new Lanes(options);
  }

  /**
   * The group has given us these partitions, of which this is committed, and no others. What has begun goes on; what has
   * not is dropped where it's another's now.
   */
  assign(given: PartitionProgress[]): void {
    const previous = this.partitions;
    this.partitions = new Map();
    for (const { topic, partition, ...known } of given) {
      const key = place(topic, partition);
      const kept = previous.get(key);
      // unless the partition was elsewhere and moved on there
      const goesOn = kept !== undefined && kept.watermark.next >= known.offset;
      if (goesOn) kept.known = known;
      this.partitions.set(key, goesOn ? kept : new Assigned(topic, partition, known));
    }
    for (const [key, each] of previous) each.lost = this.partitions.get(key) !== each;
  }

  /** Partitions that are assigned already. */
  has(topic: string, partition: number): boolean {
    return this.partitions.has(place(topic, partition));
  }

  /** Plans the messages of a partition and puts their tasks into the lanes. Throws what `plan` throws, having begun nothing. */
  async take(topic: string, partition: number, messages: KafkaMessage[]): Promise<void> {
    const assigned = this.partitions.get(place(topic, partition));
    if (!assigned) return;
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
      for (const task of tasks)
        this.lanes.push(
          unless(() => !assigned.isDue(record.offset), task),
          () => --left === 0 && end(),
        );
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
    return [...this.partitions.values()]
      .filter(({ watermark, committed }) => watermark.endings > committed)
      .map((assigned) => {
        const { topic, partition, watermark } = assigned;
        const { endings } = watermark;
        return { topic, partition, ...watermark.progress(), committed: () => void (assigned.committed = endings) };
      });
  }
}

/** The task, dropped if that is so when its turn comes. */
function unless(dropped: () => boolean, task: Task): Task {
  let begun = false;
  return {
    lane: task.lane,
    group: task.group,
    run: async () => {
      if (!begun && dropped()) return task.drop?.();
      begun = true;
      await task.run();
    },
  };
}
