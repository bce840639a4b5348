import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { EachBatchPayload } from 'kafkajs';
import { kafkaName, type Service, Unavailable } from '#contracts';
import { LOG, type Log } from '#observability';
import { deleteGroups } from './consumer-life.js';
import { KafkaClient } from './kafka.js';
import { LogRecord } from './log-record.js';
import { clockAfter } from './watermark.js';

/** A part of a partition: `to` is exclusive. */
export interface LogRange {
  from: number;
  to: number;
}

/** By partition. */
export type LogRanges = Map<number, LogRange>;

const READ_MS = 25_000;
/** Few, because a caller waits for the result. */
const FEW_RETRIES = { retry: { retries: 3 } };

/** Reads parts of a topic on demand, independently of the consumers of the process. Commits nothing. */
@Injectable()
export class LogReader {
  constructor(
    private readonly kafka: KafkaClient,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** The offsets that Kafka still has of each partition. */
  bounds(topic: string): Promise<LogRanges> {
    return this.kafka.withAdmin(async (admin) => {
      const offsets = await admin.fetchTopicOffsets(topic);
      return new Map(offsets.map(({ partition, low, high }) => [partition, { from: Number(low), to: Number(high) }]));
    }, FEW_RETRIES);
  }

  /** The offsets of the records that were written to each partition at a time (ms) or later and still exist. */
  since(topic: string, ms: number): Promise<LogRanges> {
    return this.kafka.withAdmin(async (admin) => {
      const [all, found] = [await admin.fetchTopicOffsets(topic), await admin.fetchTopicOffsetsByTimestamp(topic, ms)];
      const first = new Map(found.map(({ partition, offset }) => [partition, Number(offset)]));
      return new Map(
        all.map(({ partition, low, high }) => {
          const from = first.get(partition) ?? -1;
          return [partition, { from: from < 0 ? Number(high) : Math.max(from, Number(low)), to: Number(high) }];
        }),
      );
    }, FEW_RETRIES);
  }

  /**
   * Reads these ranges, each in order, until `take` returns false for its partition. Throws Unavailable when that takes too long.
   *
   * @param service whose consumer groups the temporary one is among
   */
  async read(
    service: Service,
    topic: string,
    ranges: LogRanges,
    take: (partition: number, records: LogRecord[]) => Promise<boolean> | boolean,
    { withinMs = READ_MS } = {},
  ): Promise<void> {
    const open = new Map([...ranges].filter(([, { from, to }]) => from < to));
    if (open.size === 0) return;
    const group = kafkaName(`${service}.reader-${randomUUID()}`);
    const consumer = this.kafka.consumer({ groupId: group, allowAutoTopicCreation: false, maxWaitTimeInMs: 200, ...FEW_RETRIES });
    const done = Promise.withResolvers<void>();
    const late = setTimeout(() => done.reject(new Unavailable('the log could not be read in time')), withinMs);
    const clocks = new Map<number, number>();
    const eachBatch = async ({ batch, heartbeat }: EachBatchPayload): Promise<void> => {
      const { partition } = batch;
      const range = open.get(partition);
      if (!range) return consumer.pause([{ topic, partitions: [partition] }]);
      const records: LogRecord[] = [];
      for (const message of batch.messages) {
        const clock = clockAfter(clocks.get(partition) ?? 0, Number(message.timestamp));
        clocks.set(partition, clock);
        const offset = Number(message.offset);
        if (offset >= range.from && offset < range.to) records.push(new LogRecord(topic, partition, message, clock));
      }
      try {
        const more = records.length === 0 || (await take(partition, records));
        range.from = Math.max(range.from, Number(batch.lastOffset()) + 1);
        if (!more || range.from >= range.to) {
          open.delete(partition);
          consumer.pause([{ topic, partitions: [partition] }]);
        }
        if (open.size === 0) done.resolve();
      } catch (error) {
        done.reject(error);
        consumer.pause([{ topic, partitions: [partition] }]);
      }
      await heartbeat();
    };
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const partitions = payload.memberAssignment[topic] ?? [];
      for (const partition of partitions) {
        const range = open.get(partition);
        if (range) consumer.seek({ topic, partition, offset: String(range.from) });
      }
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => done.reject(payload.error));
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: false });
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch });
      await done.promise;
    } finally {
      clearTimeout(late);
      await consumer.disconnect().catch((error: Error) => this.log.warn({ err: error }, 'log-reader.not-closed'));
      await deleteGroups(this.kafka, this.log, (other) => other === group);
    }
  }
}
