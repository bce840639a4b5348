import { jest } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import type { WebhookId } from '#contracts';
import { eventRecord } from '#events';
import type { PartitionProgress, Progress } from '#messaging';
import { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import { Chance } from './chance-for-tests.js';
import { type Behaviour, Endpoints } from './endpoints-for-tests.js';
import { overWire } from './faulty-store-for-tests.js';
import { findProblems, type Findings } from './findings-for-tests.js';
import type { Mutant } from './mutants-for-tests.js';
import { Replica, type World } from './replica-for-tests.js';

export interface SimulationOptions {
  seed: number;
  /** Nothing crashes and nothing gets lost: only endpoints misbehave. */
  calm?: boolean;
  mutant?: Mutant;
}

const PARTITIONS = 2;
const EMITTERS = 6;
const REPLICAS = 2;
const BUSY_MS = 30_000;
const BURST_EVERY_MS = 250;
/** Events of one emitter, one right after the other. */
const BURST = 5;
/** All work ends within the time of leases, time-outs and retries. */
const LONGEST_REST_MS = 5 * 60_000;
const MANY_ATTEMPTS = 20_000;
const TICK_MS = 250;

/** Endpoints, each of another temper; `healthy` ones stay so. */
const WEBHOOKS: { id: WebhookId; tempers: Behaviour[] }[] = [
  { id: 'wh_1healthy', tempers: ['healthy'] },
  { id: 'wh_2healthy', tempers: ['healthy'] },
  { id: 'wh_3failing', tempers: ['failing', 'healthy'] },
  { id: 'wh_4hanging', tempers: ['hanging', 'healthy'] },
  { id: 'wh_5flapping', tempers: ['failing', 'healthy', 'slow', 'healthy', 'hanging'] },
  { id: 'wh_6slow', tempers: ['slow'] },
];
const LIMITED: WebhookId = 'wh_7limited';
/** They take long with some events of one emitter. */
const STUMBLING: WebhookId = 'wh_8stumbling';
const LIMITED_STUMBLING: WebhookId = 'wh_9stumbling';

/**
 * Lets two replicas deliver a few hundred events while endpoints fail, hang and flap, processes crash, partitions move
 * and the database goes away; then lets it all come to rest and looks for what must not be. The same for the same seed.
 */
export async function simulate({ seed, calm = false, mutant }: SimulationOptions): Promise<Findings> {
  jest.useFakeTimers({ now: 1_700_000_000_000, doNotFake: ['nextTick', 'queueMicrotask'] });
  try {
    return await new Simulation(seed, calm, mutant).run();
  } finally {
    jest.clearAllTimers();
    jest.useRealTimers();
  }
}

class Simulation implements World {
  readonly chance: Chance;
  private readonly store = new DeliveryStoreInMemory();
  private readonly endpoints: Endpoints;
  private readonly log: KafkaMessage[][] = Array.from({ length: PARTITIONS }, () => []);
  private readonly committed: Progress[] = Array.from({ length: PARTITIONS }, () => ({ offset: 0, clock: 0, ended: [] }));
  private owners: (Replica | undefined)[] = [];
  private replicas: Replica[] = [];
  private started = 0;
  private awayUntil = 0;
  private troubled = true;
  private readonly emitted = new Map<string, number>();
  private readonly nextTemper = new Map<WebhookId, number>();

  constructor(
    seed: number,
    private readonly calm: boolean,
    private readonly mutant: Mutant | undefined,
  ) {
    this.chance = new Chance(seed);
    this.endpoints = new Endpoints(this.chance, 0.05);
    for (const { id } of WEBHOOKS) this.store.addWebhook(id, 'u_1');
    for (const id of [LIMITED, LIMITED_STUMBLING]) this.store.addWebhook(id, 'u_1', { rate_limit: 50, spilled: true });
    this.store.addWebhook(STUMBLING, 'u_1');
    for (const id of [STUMBLING, LIMITED_STUMBLING]) this.endpoints.behave(id, 'stumbling');
    mutant?.store?.(this.store);
  }

  async run(): Promise<Findings> {
    for (let n = 0; n < REPLICAS; n++) this.startReplica();
    this.rebalance();
    const end = Date.now() + BUSY_MS;
    let nextEvent = Date.now();
    while (Date.now() < end) {
      const until = Date.now() + TICK_MS;
      for (; nextEvent < until; nextEvent += this.chance.between(0, 2 * BURST_EVERY_MS)) this.burst(nextEvent - Date.now());
      this.changeTempers();
      if (!this.calm) this.trouble();
      await jest.advanceTimersByTimeAsync(TICK_MS);
    }
    return this.rest();
  }

  private async rest(): Promise<Findings> {
    this.troubled = false;
    this.awayUntil = 0;
    for (const { id } of WEBHOOKS) this.endpoints.behave(id, 'healthy');
    const end = Date.now() + LONGEST_REST_MS;
    while (Date.now() < end && !this.atRest() && this.endpoints.arrivals.length < MANY_ATTEMPTS)
      await jest.advanceTimersByTimeAsync(TICK_MS);
    const { arrivals, outages } = this.endpoints;
    return findProblems({
      arrivals,
      outages,
      emitted: this.emitted,
      webhooks: this.webhookIds(),
      healthy: WEBHOOKS.filter(({ tempers }) => tempers.every((temper) => temper === 'healthy')).map(({ id }) => id),
      stumbling: [STUMBLING, LIMITED_STUMBLING],
      calm: this.calm,
      left: this.whatIsLeft(),
    });
  }

  listeners(): { id: WebhookId; version: number }[] {
    return this.webhookIds().map((id) => ({ id, version: this.store.hooks.get(id)?.version ?? 0 }));
  }

  async post(headers: Record<string, string>, body: Buffer, { origin }: { origin: string }): ReturnType<World['post']> {
    const { emitter, n, at } = JSON.parse(body.toString()) as { emitter: string; n: number; at: number };
    const webhookId = this.webhookIds().find((id) => origin.includes(id.toLowerCase().replaceAll('_', '-'))) as WebhookId;
    const arrival = { webhookId, emitterId: emitter, n, messageId: headers['webhook-id'] ?? '', atMs: Date.now(), emittedAtMs: at };
    return this.endpoints.receive({ ...arrival, replica: 0, accepted: false });
  }

  messages(partition: number, from: number, count: number): KafkaMessage[] {
    return (this.log[partition] ?? []).slice(from, from + count);
  }

  commit({ partition, offset, clock, ended }: PartitionProgress): boolean {
    this.committed[partition] = { offset, clock, ended };
    return true;
  }

  private webhookIds(): WebhookId[] {
    return [...WEBHOOKS.map(({ id }) => id), LIMITED, STUMBLING, LIMITED_STUMBLING];
  }

  private burst(inMs: number): void {
    const emitter = this.chance.integer(1, EMITTERS);
    for (let left = this.chance.integer(1, BURST), at = inMs; left > 0; left--, at += this.chance.between(0, 12))
      setTimeout(() => this.emit(emitter), at);
  }

  private emit(emitter: number): void {
    const emitterId = `dc_${emitter}` as const;
    const n = (this.emitted.get(emitterId) ?? 0) + 1;
    this.emitted.set(emitterId, n);
    const json = Buffer.from(JSON.stringify({ emitter: emitterId, n, at: Date.now() }));
    const { key, value, headers } = eventRecord({ emitterId, stream: '', emitId: `emit-${n}`, json });
    const messages = this.log[emitter % PARTITIONS] as KafkaMessage[];
    // the broker's clock sometimes steps back
    const timestamp = String(Date.now() - (this.chance.happens(0.05) ? 200 : 0));
    messages.push({ offset: String(messages.length), timestamp, key: Buffer.from(key), value, headers, attributes: 0 });
  }

  private changeTempers(): void {
    for (const { id, tempers } of WEBHOOKS) {
      if (Date.now() < (this.nextTemper.get(id) ?? 0)) continue;
      this.nextTemper.set(id, Date.now() + this.chance.between(2000, 16_000));
      this.endpoints.behave(id, this.chance.pick(tempers));
    }
  }

  private trouble(): void {
    if (this.replicas.length > 0 && this.chance.happens(0.02)) this.crash(this.chance.pick(this.replicas));
    if (this.chance.happens(0.02)) this.rebalance();
    if (this.chance.happens(0.01)) this.awayUntil = Date.now() + this.chance.between(200, 3000);
  }

  private crash(replica: Replica): void {
    replica.crash();
    this.replicas = this.replicas.filter((each) => each !== replica);
    // its partitions are nobody's until the group notices
    setTimeout(() => this.rebalance(), this.chance.between(100, 4000));
    setTimeout(
      () => {
        this.startReplica();
        this.rebalance();
      },
      this.chance.between(200, 5000),
    );
  }

  private startReplica(): void {
    this.started += 1;
    const dead = () => replica.dead;
    const store = overWire(this.store, {
      chance: this.chance,
      dead,
      away: () => Date.now() < this.awayUntil,
      faults: () => (this.calm || !this.troubled ? 0 : 0.01),
    });
    const replica: Replica = new Replica(
      this.started,
      this.worldOf(() => replica),
      store,
    );
    this.mutant?.replica?.(replica);
    replica.start();
    this.replicas.push(replica);
  }

  /** The log as one replica sees it: only the owner of a partition commits its position. */
  private worldOf(replica: () => Replica): World {
    return {
      chance: this.chance,
      listeners: () => this.listeners(),
      post: (headers, body, to) => this.post(headers, body, to),
      messages: (partition, from, count) => this.messages(partition, from, count),
      commit: (progress) => this.owners[progress.partition] === replica() && this.commit(progress),
    };
  }

  /** The group assigns the partitions again. A replica that lost a partition may finish the tasks that it has begun. */
  private rebalance(): void {
    const alive = this.replicas;
    this.owners = this.log.map(() => (alive.length === 0 ? undefined : this.chance.pick(alive)));
    for (const replica of alive) {
      const own = this.committed.flatMap((progress, partition) =>
        this.owners[partition] === replica ? [{ topic: 'events', partition, ...progress }] : [],
      );
      replica.assign(own);
    }
  }

  private atRest(): boolean {
    return this.whatIsLeft().length === 0;
  }

  private whatIsLeft(): string[] {
    const left: string[] = [];
    this.log.forEach((messages, partition) => {
      const offset = this.committed[partition]?.offset;
      if (offset !== messages.length) left.push(`partition ${partition} is at ${offset} of ${messages.length}`);
    });
    for (const [id, rows] of this.store.parked) if (rows.size > 0) left.push(`${rows.size} deliveries of ${id} are parked`);
    for (const [id, { spilled, rate_limit }] of this.store.hooks) if (spilled !== (rate_limit !== null)) left.push(`${id} is spilled`);
    for (const [id, backlog] of this.store.backlogs)
      if (id !== LIMITED && id !== LIMITED_STUMBLING) left.push(`${id} has a backlog: ${JSON.stringify({ ...backlog, now: Date.now() })}`);
    for (const replica of this.replicas) {
      for (const { webhookId, waiting } of replica.receivers)
        if (waiting.size > 0) left.push(`${waiting.size} deliveries to ${webhookId} wait in no lane of replica ${replica.id}`);
      if (replica.intake.lanes.outstanding > 0) left.push(`${replica.intake.lanes.outstanding} tasks of replica ${replica.id}`);
    }
    return left;
  }
}
