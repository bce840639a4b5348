import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Log } from '#observability';
import { createConsumer } from './consumer-life.js';
import { Gathering } from './gathering.js';
import { LaneIntake, type LaneIntakeOptions, type PartitionPosition } from './lane-intake.js';

export interface LaneConsumerOptions extends LaneIntakeOptions {
  group: string;
  topics: string[];
  /** How often the low watermark is committed, in ms: what a crash repeats. */
  commitEveryMs?: number;
  /** How long a record at the end of the log may wait for others, in ms. */
  gatherMs?: number;
}

const DRAIN_MS = 8000;
/** Records that are planned together: between chunks the room is looked at. */
const CHUNK = 500;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Keyed lanes over a consumer with a low-watermark commit: records become tasks in lanes (`plan`), lanes run side by
 * side, and every so often the position below which everything has ended is committed. At least once: a crash repeats
 * what was above the position. A throwing task runs again until it doesn't throw.
 *
 * The folded clock travels in the commit's metadata, so that event ids come out the same after a restart.
 */
export class LaneConsumer {
  readonly intake: LaneIntake;
  private readonly consumer: Consumer;
  private readonly name: { group: string };
  private readonly gathering: Gathering;
  private assigned: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private committing: Promise<void> = Promise.resolve();
  private stopping = false;

  constructor(
    private readonly kafka: Kafka,
    private readonly log: Log,
    private readonly options: LaneConsumerOptions,
  ) {
    this.name = { group: options.group };
    this.gathering = new Gathering(options.gatherMs ?? 0);
    this.intake = new LaneIntake({
      ...options,
      onFailure: (error, lane) => {
        log.error({ ...this.name, lane, err: error }, 'lane.task-failed');
        options.onFailure?.(error, lane);
      },
    });
    this.consumer = createConsumer(kafka, options.group, log);
  }

  /** Joins the group; resolves when the first fetch is on its way. */
  async start(): Promise<void> {
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.assigned = this.assign(payload.memberAssignment);
      // awaited by the next batch, which throws it on
      this.assigned.catch(() => {});
    });
    // before the partitions may go to another member: what isn't committed now it does again
    this.consumer.on(this.consumer.events.REBALANCING, () => void this.commit());
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: this.options.topics, fromBeginning: true });
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (payload) => this.eachBatch(payload) });
    this.timer = setInterval(() => void this.commit(), this.options.commitEveryMs ?? 100);
  }

  /** Takes no more, waits for what is under way, commits, leaves the group. */
  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    this.consumer.pause(this.options.topics.map((topic) => ({ topic })));
    await Promise.race([this.intake.lanes.room(1), new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())]);
    await this.commit();
    await this.consumer.disconnect();
  }

  private async assign(assignment: Record<string, number[]>): Promise<void> {
    const admin = this.kafka.admin();
    await admin.connect();
    try {
      const topics = Object.keys(assignment);
      const offsets = topics.length === 0 ? [] : await admin.fetchOffsets({ groupId: this.options.group, topics });
      const positions: PartitionPosition[] = offsets.flatMap(({ topic, partitions }) =>
        partitions
          .filter(({ partition }) => assignment[topic]?.includes(partition))
          // -1: nothing committed yet
          .map(({ partition, offset, metadata }) => ({
            topic,
            partition,
            offset: Math.max(0, Number(offset)),
            clock: Number(metadata) || 0,
          })),
      );
      this.intake.assign(positions);
    } finally {
      await admin.disconnect();
    }
  }

  private async eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }: EachBatchPayload): Promise<void> {
    await this.assigned;
    for (let start = 0; start < batch.messages.length; start += CHUNK) {
      const chunk = batch.messages.slice(start, start + CHUNK);
      for (let pause = 100; ; pause = Math.min(pause * 2, 3000)) {
        while (!this.intake.hasRoom) {
          await Promise.race([this.intake.room(), sleep(500)]);
          await heartbeat();
        }
        if (this.stopping || !isRunning() || isStale()) return;
        try {
          await this.intake.take(batch.topic, batch.partition, chunk);
          break;
        } catch (error) {
          this.log.warn({ ...this.name, topic: batch.topic, partition: batch.partition, err: error }, 'lane.batch-failed');
          await sleep(pause);
          await heartbeat();
        }
      }
      const last = chunk.at(-1);
      if (last) resolveOffset(last.offset);
    }
    await heartbeat();
    await this.gathering.rest(batch);
  }

  private commit(): Promise<void> {
    this.committing = this.committing.then(async () => {
      const positions = this.intake.uncommitted();
      if (positions.length === 0) return;
      try {
        await this.consumer.commitOffsets(
          positions.map(({ topic, partition, offset, clock }) => ({ topic, partition, offset: String(offset), metadata: String(clock) })),
        );
        this.intake.committed(positions);
      } catch (error) {
        // a rebalance or a broker that is away: the next tick commits more
        this.log.debug({ ...this.name, err: error }, 'lane.commit-failed');
      }
    });
    return this.committing;
  }
}
