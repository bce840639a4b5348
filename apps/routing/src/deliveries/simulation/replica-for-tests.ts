import type { KafkaMessage } from 'kafkajs';
import type { UserId, WebhookId } from '#contracts';
import { type EmittedEvent, readEventRecord } from '#events';
import { LaneIntake, type PartitionProgress } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { limitsOfLanes, RoutingConfig } from '../../routing.config.js';
import { Attempts } from '../attempt/attempts.js';
import { Backlogs } from '../backlog/backlogs.js';
import { DeliveredLog } from '../history/delivered-log.js';
import { deliveryOf } from '../delivery.js';
import type { DeliveryStore } from '../store/delivery-store.js';
import { Dispatcher } from '../direct/dispatcher.js';
import { Drainer } from '../backlog/drainer.js';
import { ReceiverStates } from '../receivers/receiver-states.js';
import { Notices } from '../notices.js';
import { RunningClock } from '../attempt/running-clock.js';
import { type PostResult, Poster } from '../attempt/http-poster.js';
import { Targets } from '../receivers/targets.js';
import type { Chance } from './chance-for-tests.js';
import { TIMEOUT_MS } from './endpoints-for-tests.js';

const log = createLog('simulation', process.env.SIMULATION_LOG_LEVEL ?? 'silent');
export const OWNER = 'u_owner' as UserId;
const MAX_OUTSTANDING = 200;
const FETCHED = 25;

export const CONFIG = Object.assign(RoutingConfig.read({}), {
  // nothing is given up within a simulation
  retrySchedule: [1000, 2000, 4000, ...Array.from({ length: 200 }, () => 5000)],
  attemptTimeoutMs: TIMEOUT_MS,
  connectTimeoutMs: 5000,
  concurrency: 64,
});

/** The world as a replica sees it. */
export interface World {
  chance: Chance;
  listeners(event: EmittedEvent): { id: WebhookId; version: number }[];
  post(headers: Record<string, string>, body: Buffer, to: { origin: string }): Promise<PostResult>;
  messages(partition: number, from: number, count: number): KafkaMessage[];
  /** False if the replica no longer owns the partition. */
  commit(progress: PartitionProgress): boolean;
}

const never = new Promise<never>(() => {});
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

class SimulatedPoster extends Poster {
  constructor(private readonly replica: Replica) {
    super();
  }

  async post(to: { origin: string }, headers: Record<string, string>, body: Buffer): Promise<PostResult> {
    if (this.replica.dead) return never;
    const result = await this.replica.world.post(headers, body, to);
    return this.replica.dead ? never : result;
  }

  async close(): Promise<void> {}
}

class NoNotices extends Notices {
  gaveUp(): void {}
  async expired(): Promise<void> {}
  disabled(): void {}
}

/** A replica of routing, without Kafka, PostgreSQL and HTTP. */
export class Replica {
  dead = false;
  readonly intake: LaneIntake;
  readonly targets: Targets;
  readonly receivers = new ReceiverStates();
  readonly attempts: Attempts;
  readonly dispatcher: Dispatcher;
  readonly drainer: Drainer;
  private readonly backlogs: Backlogs;
  /** Where each assigned partition is read on. */
  private readonly positions = new Map<number, number>();

  constructor(
    readonly id: number,
    readonly world: World,
    store: DeliveryStore,
  ) {
    const random = world.chance.next;
    this.targets = new Targets(log, store, new SecretBox([]));
    const clock = new RunningClock();
    this.attempts = new Attempts(log, CONFIG, new SimulatedPoster(this), random, { countEnded() {} } as never, clock);
    const delivered = new DeliveredLog({ add: async () => {} } as never, log);
    const notices = new NoNotices();
    this.dispatcher = new Dispatcher(log, CONFIG, store, this.targets, this.receivers, this.attempts, delivered, notices, random, clock);
    this.drainer = new Drainer(log, CONFIG, store, this.targets, this.receivers, this.attempts, delivered, notices, random);
    this.backlogs = new Backlogs(log, store, this.drainer, random);
    this.intake = new LaneIntake({
      ...limitsOfLanes(CONFIG.concurrency),
      groupConcurrency: CONFIG.webhookConcurrency,
      maxOutstanding: MAX_OUTSTANDING,
      plan: async (records) => {
        await sleep(world.chance.between(0.5, 4));
        const events = records.map((record) => readEventRecord(record));
        const listeners = events.map((event) => (event.kind === 'event' ? world.listeners(event) : []));
        // what the statement has seen is a little older than what is done with it
        await sleep(world.chance.between(0.5, 2));
        return events.map((event, index) =>
          (listeners[index] ?? []).map(({ id, version }) =>
            this.dispatcher.firstAttempt(deliveryOf(event as EmittedEvent, id), version, OWNER),
          ),
        );
      },
    });
    this.dispatcher.watchPressure(() => this.intake.load > 0.5);
  }

  start(): void {
    this.backlogs.onApplicationBootstrap();
    void this.consume();
    setInterval(() => this.commit(), 50);
  }

  /** From one moment to the next: nothing of it happens any more. */
  crash(): void {
    this.dead = true;
    this.dispatcher.onApplicationShutdown();
  }

  assign(progress: PartitionProgress[]): void {
    this.intake.keepOnly(progress);
    this.intake.assign(progress);
    this.positions.clear();
    for (const { partition, offset } of progress) this.positions.set(partition, offset);
  }

  private async consume(): Promise<void> {
    while (!this.dead) {
      for (const [partition, from] of this.positions) {
        const messages = this.intake.hasCapacity ? this.world.messages(partition, from, FETCHED) : [];
        if (messages.length === 0) continue;
        if (!(await this.intake.take('events', partition, messages))) continue;
        // unless it was taken away and given back meanwhile
        if (this.positions.get(partition) === from) this.positions.set(partition, from + messages.length);
      }
      await sleep(5);
    }
  }

  private commit(): void {
    if (this.dead) return;
    for (const progress of this.intake.uncommitted()) if (this.world.commit(progress)) progress.done();
  }
}
