import type { KafkaMessage } from 'kafkajs';
import { Lanes, type LanesOptions, type Task } from './lanes.js';
import { LogRecord } from './log-record.js';
import { type Position, Watermark } from './watermark.js';

export interface LaneIntakeOptions extends LanesOptions {
  /** Above this many outstanding tasks no more records are taken. */
  maxOutstanding: number;
  /**
   * Says for each record of a batch what is to be done; nothing is a good answer. It's awaited before the next batch of
   * the partition, so one SQL statement can serve the whole batch.
   */
  plan(records: LogRecord[]): Task[][] | Promise<Task[][]>;
}

/** A partition's position, as it may be committed. */
export interface PartitionPosition extends Position {
  topic: string;
  partition: number;
}

const place = (topic: string, partition: number): string => `${topic}/${partition}`;

/**
 * Turns records of assigned partitions into tasks in lanes and knows how far each partition is done: the part of a
 * lane consumer that knows no Kafka, so that crashes and rebalances can be simulated.
 */
export class LaneIntake {
  readonly lanes: Lanes;
  private partitions = new Map<string, { topic: string; partition: number; watermark: Watermark; committed: number }>();

  constructor(private readonly options: LaneIntakeOptions) {
    this.lanes = new Lanes(options);
  }

  /** The group has given us these partitions, which are committed up to these positions, and no others. */
  assign(positions: PartitionPosition[]): void {
    const previous = this.partitions;
    this.partitions = new Map();
    for (const { topic, partition, ...position } of positions) {
      const key = place(topic, partition);
      const kept = previous.get(key);
      // what has begun here goes on, and isn't begun again; unless the partition was elsewhere and moved on there
      const goesOn = kept !== undefined && kept.watermark.next >= position.offset;
      this.partitions.set(key, goesOn ? kept : { topic, partition, watermark: new Watermark(position), committed: position.offset });
    }
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
    if (records.length === 0) return;
    const plans = await this.options.plan(records);
    records.forEach((record, index) => {
      const { end } = watermark.begin(record.offset, record.clock);
      const tasks = plans[index] ?? [];
      let left = tasks.length;
      if (left === 0) return end();
      for (const task of tasks) this.lanes.push(task, () => --left === 0 && end());
    });
  }

  /** Whether more records may be taken. */
  get hasRoom(): boolean {
    return this.lanes.outstanding < this.options.maxOutstanding;
  }

  room(): Promise<void> {
    return this.lanes.room(this.options.maxOutstanding);
  }

  /** What has moved on since it was committed last. */
  uncommitted(): PartitionPosition[] {
    return [...this.partitions.values()]
      .map(({ topic, partition, watermark }) => ({ topic, partition, ...watermark.position() }))
      .filter(({ topic, partition, offset }) => offset > (this.partitions.get(place(topic, partition))?.committed ?? 0));
  }

  committed(positions: PartitionPosition[]): void {
    for (const { topic, partition, offset } of positions) {
      const assigned = this.partitions.get(place(topic, partition));
      if (assigned) assigned.committed = Math.max(assigned.committed, offset);
    }
  }
}
