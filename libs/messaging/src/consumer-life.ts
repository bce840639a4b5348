import { randomUUID } from 'node:crypto';
import type { Batch, Consumer, ConsumerConfig, ConsumerRunConfig } from 'kafkajs';
import { counter, gauge, type Log } from '#observability';
import { removeDeadMembers } from './dead-members.js';
import { explainKafkaError, isBrokerFailure } from './kafka-errors.js';
import { type KafkaClient, METADATA_MAX_AGE_MS } from './kafka.js';

interface ConsumerState {
  group: string;
  /** Whether the service is not ready without it. */
  vital: boolean;
  running: boolean;
  /** Whether the records of a fetch are being planned. Meanwhile, no fetch ends and no heartbeat is sent. */
  planning: boolean;
  /** When the brokers last responded to a fetch or a heartbeat, as from performance.now(). */
  lastContactAt: number;
}

const states = new Map<string, ConsumerState>();

/** The state of every consumer of this process, for the health endpoint. `silentMs`: since the last contact with the brokers. */
export const consumerStates = (): (Omit<ConsumerState, 'lastContactAt'> & { silentMs: number })[] =>
  [...states.values()].map(({ lastContactAt, ...state }) => ({ ...state, silentMs: performance.now() - lastContactAt }));

const lag = gauge(
  'consumer_lag_records',
  'Records of its partitions that a consumer group has not fetched yet, in this process; if its position is in the database, those that it has not handled yet.',
  ['group'],
);
export const oldestRecord = gauge(
  'consumer_oldest_record_seconds',
  'How long the oldest record that a consumer group has begun and not finished has been in progress, in this process; 0 if there is none. If its position is in the database, also how long that could not be read.',
  ['group'],
);
const restarts = counter('consumer_revivals_total', 'Consumers that failed and were started again.', ['group']);

const MAX_WAIT_MS = 4000;
/** The group removes a member after this time without a heartbeat: a process that was killed blocks its group for this long. */
export const SESSION_MS = 10_000;

const defaults = {
  sessionTimeout: SESSION_MS,
  rebalanceTimeout: 20_000,
  heartbeatInterval: 1500,
  // a fetch returns at once if there is data: this only limits how often an idle consumer asks, and how soon it lets another one join its group
  maxWaitTimeInMs: MAX_WAIT_MS,
  maxBytes: 16 * 1024 * 1024,
  allowAutoTopicCreation: false,
  metadataMaxAge: METADATA_MAX_AGE_MS,
} satisfies Partial<ConsumerConfig>;

/** A process that was killed blocks nobody in its own group. */
const OWN_SESSION_MS = 30_000;
/** More partitions of a topic than one process is expected to read. */
const MANY_PARTITIONS = 64;

/** A broker that did not respond for this long may have been replaced by another one with other records. */
const SILENCE_MS = MAX_WAIT_MS + 2000;
/** How long a stop waits for the end of a start. */
const JOINED_IN_MS = 1000;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 15_000;
/** How often a consumer looks whether a fetch is lost. It takes seconds at most, or half a minute if the broker is silent. */
const LOOK_MS = 30_000;
/** After this many looks in a row at which nothing has come, although a broker responds, it is lost: the election of a leader takes less. */
const LOST_AFTER_LOOKS = 5;

/** With the global timer, which a test can replace. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The same, but it does not keep the process alive. */
export const unrefSleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref());

export interface WatchedConsumerOptions {
  /**
   * The log may be another. Called before a new connection to a broker, before the first fetch after a failed one, and before the records of the first fetch
   * after a silence of the broker; also while the consumer is not running.
   */
  onInterruption?(): void;
  /** false: the service is ready without it, and continues if it fails. */
  vital?: boolean;
  /** The group belongs to this consumer alone and is deleted at the end: its name is `name` and a unique id. */
  ownGroup?: boolean;
  config?: Partial<ConsumerConfig>;
}

/**
 * A consumer with our settings that is restarted when it fails:
 *
 *   start ──► running ──► crashed: kafkajs restarts it or, if it gives up,
 *                           brokers down, or not vital ──► a pause of 1 … 15 s ──► restarted
 *                           permission denied, or a bug ──► `onFatal`: a process that does not consume looks healthy and does nothing
 *               ──► a fetch does not end, although a broker responds: a bug ──► `onFatal`
 */
export class WatchedConsumer {
  readonly consumer: Consumer;
  readonly group: string;
  private readonly state: ConsumerState;
  private readonly ownGroup: boolean;
  private readonly onInterruption: () => void;
  private readonly lags = new Map<string, number>();
  private stopping = false;
  /** The start or restart in progress. */
  private joining: Promise<void> = Promise.resolve();
  /** When each broker last responded to a fetch, as from Date.now(): the clock that shows for how long this machine was suspended. */
  private readonly fetches = new Map<number, number>();
  /** The brokers from which a fetch has begun and not ended. */
  private readonly fetching = new Set<number>();
  private watch: NodeJS.Timeout | undefined;
  /** The last contact at the last look, and the looks since then. */
  private silence = { since: -1, looks: 0 };

  /** name: of the group, for metrics. */
  constructor(
    private readonly kafka: KafkaClient,
    private readonly name: string,
    private readonly log: Log,
    { onInterruption = () => {}, vital = true, ownGroup = false, config = {} }: WatchedConsumerOptions = {},
  ) {
    this.onInterruption = onInterruption;
    this.ownGroup = ownGroup;
    this.group = ownGroup ? `${name}.${randomUUID()}` : name;
    const settings = { ...defaults, ...(ownGroup && { sessionTimeout: OWN_SESSION_MS }), ...config, groupId: this.group };
    this.consumer = kafka.watchedConsumer(settings, () => this.onInterruption());
    this.state = { group: this.group, vital, running: false, planning: false, lastContactAt: 0 };
    states.set(this.group, this.state);
  }

  /** Joins the group and begins to fetch: before it resolves or, if the consumer is not vital, some time later. */
  async start(topics: string[], { fromBeginning, ...config }: ConsumerRunConfig & { fromBeginning: boolean }): Promise<void> {
    // all partitions of a fetch: a pause after one must not delay the others
    const run = { ...config, partitionsConsumedConcurrently: MANY_PARTITIONS };
    const { consumer, state, log, group } = this;
    const contact = () => void (state.lastContactAt = performance.now());
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      state.running = true;
      // other processes report the lag of the partitions that they have now
      this.lags.clear();
      this.reportLag();
      contact();
      log.debug({ group, assignment: payload.memberAssignment }, 'consumer.joined');
    });
    consumer.on(consumer.events.FETCH_START, ({ payload }) => {
      // the last one failed, for instance because its topic was deleted and created again
      if (this.fetching.has(payload.nodeId)) this.onInterruption();
      this.fetching.add(payload.nodeId);
    });
    consumer.on(consumer.events.FETCH, ({ payload }) => {
      contact();
      this.fetching.delete(payload.nodeId);
      const now = Date.now();
      const last = this.fetches.get(payload.nodeId) ?? now;
      this.fetches.set(payload.nodeId, now);
      if (now - last > SILENCE_MS) this.onInterruption();
    });
    consumer.on(consumer.events.HEARTBEAT, contact);
    consumer.on(consumer.events.STOP, () => void (state.running = false));
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      state.running = false;
      if (payload.restart) {
        restarts.inc({ group: this.name });
        return log.warn({ group, err: payload.error }, 'consumer.restarting');
      }
      void this.afterCrash(payload.error, run);
    });
    if (state.vital) this.watch = setInterval(() => void this.look(), LOOK_MS).unref();
    const join = async () => {
      await Promise.all([consumer.connect(), this.ownGroup || removeDeadMembers(this.kafka, group, log)]);
      if (this.stopping) return;
      await consumer.subscribe({ topics, fromBeginning });
      await consumer.run(run);
    };
    const joined = this.begin(join);
    // brokers that are down again just now are awaited
    if (state.vital) return joined.catch((error: Error) => (isBrokerFailure(error) ? this.restart(error, join) : Promise.reject(error)));
    // nothing waits for it: after a crash, the group first waits for the dead member
    void joined.catch((error: Error) => this.restart(error, join));
  }

  /** Runs `join`; a stop waits for its end. */
  private begin(join: () => Promise<void>): Promise<void> {
    return (this.joining = join());
  }

  /** Fetches the partition from this offset next. While the consumer is not running, it does nothing: its positions are read again when it joins. */
  seek(topic: string, partition: number, offset: number): void {
    this.ifRunning(() => this.consumer.seek({ topic, partition, offset: String(offset) }));
  }

  /** Fetches nothing of these partitions of the topic, and all others again. When the consumer is restarted after a crash, none is paused. */
  pauseOnly(topic: string, partitions: number[]): void {
    this.ifRunning(() => {
      const before = this.consumer.paused().find((each) => each.topic === topic)?.partitions ?? [];
      this.consumer.pause([{ topic, partitions }]);
      const resumed = before.filter((partition) => !partitions.includes(partition));
      if (resumed.length > 0) this.consumer.resume([{ topic, partitions: resumed }]);
    });
  }

  set planning(planning: boolean) {
    this.state.planning = planning;
  }

  private ifRunning(change: () => void): void {
    try {
      change();
    } catch (error) {
      this.log.debug({ group: this.group, err: error }, 'consumer.not-running');
    }
  }

  /** Records the lag of a fetched batch behind the end of its partition. */
  recordLag(batch: Batch): void {
    this.lags.set(`${batch.topic}/${batch.partition}`, Number(batch.offsetLag()));
    this.reportLag();
  }

  private reportLag(): void {
    this.setLag([...this.lags.values()].reduce((sum, each) => sum + each, 0));
  }

  /** Sets the lag, which is otherwise the sum of what `recordLag` has recorded. */
  setLag(records: number): void {
    if (!this.stopping) lag.set({ group: this.name }, records);
  }

  /** Requests of other connections distinguish a lost fetch from brokers that are down. A process that stood still has missed one look only. */
  private async look(): Promise<void> {
    const { lastContactAt, running, planning } = this.state;
    const { since, looks } = this.silence;
    const isSilent = running && !planning && this.fetching.size > 0 && lastContactAt === since;
    const responds =
      isSilent && (await this.kafka.withAdmin((admin) => admin.describeCluster(), { retry: { retries: 0 } }).then(Boolean, () => false));
    this.silence = { since: lastContactAt, looks: responds ? looks + 1 : 0 };
    if (this.silence.looks < LOST_AFTER_LOOKS || this.stopping || this.state.lastContactAt !== lastContactAt) return;
    clearInterval(this.watch);
    this.kafka.onFatal(new Error('a fetch has not ended, although the brokers respond'), `consumer group ${this.group}`);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.watch);
    states.delete(this.group);
    lag.remove({ group: this.name });
    // kafkajs leaves a group only after it has joined it: other members would wait for the end of the session
    await Promise.race([this.joining.catch(() => {}), unrefSleep(JOINED_IN_MS)]);
    await this.consumer.disconnect();
    if (this.ownGroup) await deleteGroups(this.kafka, this.log, [this.group]);
  }

  private async afterCrash(error: Error, run: ConsumerRunConfig): Promise<void> {
    const { group, state } = this;
    const explanation = explainKafkaError(error);
    if (state.vital && (explanation !== undefined || !isBrokerFailure(error))) return this.kafka.onFatal(error, `consumer group ${group}`);
    await this.restart(error, async () => {
      await this.consumer.connect();
      if (!this.stopping) await this.consumer.run(run);
    });
  }

  private async restart(error: Error, join: () => Promise<void>): Promise<void> {
    const { group, name, log, state } = this;
    for (let pause = FIRST_PAUSE_MS; !this.stopping && !state.running; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      log[state.vital ? 'warn' : 'error']({ group, err: error, reason: explainKafkaError(error), pause_ms: pause }, 'consumer.failed');
      await sleep(pause);
      if (this.stopping) return;
      restarts.inc({ group: name });
      try {
        return await this.begin(join);
      } catch (again) {
        error = again as Error;
      }
    }
  }
}

/** Deletes groups; Kafka refuses those that have members. Best effort: it deletes empty groups itself, but only after days. */
export async function deleteGroups(kafka: KafkaClient, log: Log, groups: string[]): Promise<void> {
  await kafka
    .withAdmin((admin) => admin.deleteGroups(groups), { retry: { retries: 0 } })
    .catch((error: Error) => log.debug({ groups, err: error }, 'consumer-groups.not-deleted'));
}
