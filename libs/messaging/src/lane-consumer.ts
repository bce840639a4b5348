import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { Log } from '#observability';
import { committedProgress, progressMetadata } from './committed-progress.js';
import { createConsumer } from './consumer-life.js';
import { Gathering } from './gathering.js';
import { LaneIntake, type LaneIntakeOptions } from './lane-intake.js';

export interface LaneConsumerOptions extends LaneIntakeOptions {
  group: string;
  topics: string[];
  /** How often it's committed what has ended, in ms: what a crash repeats. */
  commitEveryMs?: number;
  /** How long a record at the end of the log may wait for others, in ms. */
  gatherMs?: number;
}

const DRAIN_MS = 8000;
/** How long a rebalance may keep tasks from beginning, which another process may have to do. */
const HOLD_MS = 5000;
/** Records that are planned together: between chunks the room is looked at. */
const CHUNK = 500;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Keyed lanes over a consumer: records become tasks in lanes (`plan`), lanes run side by side, and every so often it's
 * committed which records have ended: all below the committed offset, and those that the commit's metadata tells above it.
 * At least once: a crash repeats what was under way, and what has ended since the last commit. A throwing task runs again
 * until it doesn't throw.
 *
 * The folded clock travels in the metadata too, so that event ids come out the same after a restart.
 */
export class LaneConsumer {
  readonly intake: LaneIntake;
  private readonly consumer: Consumer;
  private readonly name: { group: string };
  private readonly gathering: Gathering;
  private assigned: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private holding: NodeJS.Timeout | undefined;
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
    // the partitions may go to another member, which does again what isn't committed
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.hold();
      void this.commit();
    });
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: this.options.topics, fromBeginning: true });
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (payload) => this.eachBatch(payload) });
    this.timer = setInterval(() => void this.commit(), this.options.commitEveryMs ?? 100);
  }

  /** Takes no more, waits for what is under way, commits, leaves the group. */
  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    this.release();
    this.consumer.pause(this.options.topics.map((topic) => ({ topic })));
    await Promise.race([this.intake.lanes.room(1), new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())]);
    await this.commit();
    await this.consumer.disconnect();
  }

  private hold(): void {
    if (this.stopping) return;
    clearTimeout(this.holding);
    this.holding = setTimeout(() => this.release(), HOLD_MS);
    this.intake.lanes.hold();
  }

  private release(): void {
    clearTimeout(this.holding);
    this.intake.lanes.release();
  }

  private async assign(assignment: Record<string, number[]>): Promise<void> {
    const admin = this.kafka.admin();
    await admin.connect();
    try {
      const topics = Object.keys(assignment);
      const offsets = topics.length === 0 ? [] : await admin.fetchOffsets({ groupId: this.options.group, topics });
      this.intake.assign(
        offsets.flatMap(({ topic, partitions }) =>
          partitions
            .filter(({ partition }) => assignment[topic]?.includes(partition))
            .map(({ partition, offset, metadata }) => ({ topic, partition, ...committedProgress(Number(offset), metadata) })),
        ),
      );
      this.release();
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
      const uncommitted = this.intake.uncommitted();
      if (uncommitted.length === 0) return;
      try {
        await this.consumer.commitOffsets(
          uncommitted.map((progress) => ({
            topic: progress.topic,
            partition: progress.partition,
            offset: String(progress.offset),
            metadata: progressMetadata(progress),
          })),
        );
        for (const progress of uncommitted) progress.committed();
      } catch (error) {
        // a rebalance or a broker that is away: the next tick commits more
        this.log.debug({ ...this.name, err: error }, 'lane.commit-failed');
      }
    });
    return this.committing;
  }
}
