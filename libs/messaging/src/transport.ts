import { isDeepStrictEqual } from 'node:util';
import { type CustomTransportStrategy, type MessageHandler, Server } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { requestsTopic, type Service } from '#contracts';
import { type Log, withRequestId } from '#observability';
import type { SecretBox } from '#secrets';
import type { Consumers } from './consumers.js';
import { Batch, type ConsumerSettings, type EntryPoint, type Readable } from './handlers.js';
import type { KafkaClient } from './kafka.js';
import { LaneConsumer } from './lane-consumer.js';
import type { Task } from './lanes.js';
import { LogConsumer } from './log-consumer.js';
import type { LogRecord } from './log-record.js';
import { laneFailures, Outcomes, Repeat } from './outcomes.js';
import { BadRecord, payloadOf } from './payload.js';
import type { Publisher } from './publisher.js';
import { RequestLanes } from './request-lanes.js';
import { Requests } from './requests.js';
import type { Restores } from './restores.js';
import type { Position } from './watermark.js';
import { HEADER } from './wire.js';

export interface TransportOptions {
  service: Service;
  kafka: KafkaClient;
  publisher: Publisher;
  consumers: Consumers;
  log: Log;
  restores?: Restores;
  /** For requests that carry secrets. */
  box: SecretBox;
  /** Whether the error of a handler is transient (such as a database that is down): the record is then retried until it succeeds. */
  isTransient(error: unknown): boolean;
  /** The cause of a transient error, for users. */
  outageOf(error: unknown): string;
}

/** A decorated method, with everything that Nest puts around it. record: the record of the call; undefined for a batch. */
export type Handler = (payload: unknown, record?: LogRecord) => Promise<unknown>;

type Planner = (records: LogRecord[]) => Promise<Task[][]>;

const REQUESTS_GROUP = 'requests';
/** More than the long requests of each service, which it limits, can occupy together. */
const REQUESTS: ConsumerSettings = { concurrency: 128 };
const DEFAULTS = { concurrency: 32 };
/** Waiting tasks per task in progress. */
const WAITING = 4;

/**
 * The only way in: Nest's handlers over Kafka. It owns every consumer, its lanes, validation, retries and dead letters; a feature only decorates the
 * methods of its controllers (handlers.ts).
 *
 *   Handles         requests topic ─► one lane per request (request-lanes.ts) ─► reply
 *   Consumes        topic ─► validated ─► lanes by key ─► Outcome
 *   ConsumesBatch   topic ─► validated batch ─► tasks in lanes
 *   Follows         topic ─► batch and position, stored by the handler
 */
export class KafkaTransport extends Server implements CustomTransportStrategy {
  private readonly outcomes: Outcomes;
  private consumers: { start(): Promise<void>; stop(): Promise<void> }[] = [];
  private closed = false;

  constructor(private readonly options: TransportOptions) {
    super();
    this.outcomes = new Outcomes(options);
  }

  override addHandler(pattern: string, callback: MessageHandler, isEventHandler?: boolean, extras?: Record<string, unknown>): void {
    if (this.messageHandlers.has(pattern)) throw new Error(`two methods handle "${pattern}"`);
    super.addHandler(pattern, callback, isEventHandler, extras);
  }

  listen(callback: (error?: unknown) => void): void {
    this.start().then(() => callback(), callback);
  }

  /** Also during or before `listen`, which then starts nothing more. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.consumers.map((consumer) => consumer.stop()));
    await this.options.restores?.stop();
  }

  // required by Nest's Server, not used by a Kafka transport
  on(): void {
    throw new Error('not supported');
  }
  unwrap<T>(): T {
    return this.options.kafka as T;
  }

  private async start(): Promise<void> {
    if (this.closed) return;
    this.consumers = [...this.requestConsumers(), ...this.recordConsumers(), ...this.logConsumers()];
    await Promise.all(this.consumers.map((each) => each.start()));
  }

  private entryPoints<Kind extends EntryPoint['kind']>(...kinds: Kind[]): { entry: EntryPoint & { kind: Kind }; handler: Handler }[] {
    return [...this.messageHandlers.values()].flatMap((callback) => {
      const { entry } = callback.extras as { entry: EntryPoint };
      if (!(kinds as string[]).includes(entry.kind)) return [];
      return [{ entry: entry as EntryPoint & { kind: Kind }, handler: this.handler(callback) }];
    });
  }

  private requestConsumers(): LaneConsumer[] {
    const handled = this.entryPoints('handles');
    const requested = handled.map(({ entry, handler }): [string, Handler] => [entry.name, handler]);
    const announced = this.entryPoints('consumes').map(({ entry, handler }): [string, Handler] => [entry.source.topic, handler]);
    if (requested.length + announced.length === 0) return [];
    const requests = new Requests(new Map([...requested, ...announced]), this.options);
    const commands = new Set(handled.flatMap(({ entry }) => (entry.changes ? [entry.name] : [])));
    const lanes = new RequestLanes((record) => commands.has(record.header(HEADER.message) ?? ''));
    const plan = (records: LogRecord[]): Promise<Task[][]> =>
      Promise.resolve(
        records.map((record) => [
          lanes.task(
            record,
            this.outcomes.work(record, () => requests.handle(record)),
          ),
        ]),
      );
    const topics = new Map([[requestsTopic(this.options.service), plan]]);
    return [this.laneConsumer(REQUESTS_GROUP, topics, REQUESTS, () => lanes.assigned())];
  }

  /** One consumer per group, for all topics that its methods handle. */
  private recordConsumers(): LaneConsumer[] {
    const groups = new Map<string, { topics: Map<string, Planner>; settings: ConsumerSettings }>();
    for (const { entry, handler } of this.entryPoints('consumes', 'consumes-batch')) {
      const settings = typeof entry.settings === 'function' ? entry.settings() : entry.settings;
      const group = groups.get(entry.group) ?? { topics: new Map<string, Planner>(), settings };
      if (!isDeepStrictEqual(settings, group.settings))
        throw new Error(`two methods of the group "${entry.group}" have different settings`);
      group.topics.set(entry.source.topic, this.planner(entry.kind, entry.source, handler, settings.groupOf));
      groups.set(entry.group, group);
    }
    return [...groups].map(([group, { topics, settings }]) => this.laneConsumer(group, topics, settings));
  }

  /** Validates a batch and turns it into tasks; invalid records go to the dead-letter topic. */
  private planner(
    kind: 'consumes' | 'consumes-batch',
    { payload }: Readable,
    handler: Handler,
    groupOf?: ConsumerSettings['groupOf'],
  ): Planner {
    const one = (record: LogRecord, value: unknown): Task => ({
      lane: `${record.topic} ${record.key}`,
      group: groupOf?.(value as never),
      run: this.outcomes.work(record, () => handler(value, record)),
    });
    return async (records) => {
      const values = payload
        ? await Promise.all(records.map((record) => payloadOf(payload, record).catch((error: BadRecord) => error)))
        : records;
      const valid = values.filter((value: object) => !(value instanceof BadRecord));
      const handled = kind === 'consumes-batch' && valid.length > 0 ? ((await handler(valid)) as Task[][] | undefined) : undefined;
      const planned = (handled ?? valid.map((): Task[] => [])).values();
      const plans: Task[][] = [];
      for (const [index, record] of records.entries()) {
        const value = values[index];
        if (value instanceof BadRecord) plans.push([this.outcomes.deadLetterTask(record, value.message)]);
        else if (kind === 'consumes') plans.push([one(record, value)]);
        else {
          const { value: tasks, done } = planned.next();
          // the handler has planned the first records only
          if (done) break;
          plans.push(tasks);
        }
      }
      return plans;
    };
  }

  private laneConsumer(
    group: string,
    topics: Map<string, Planner>,
    { concurrency = DEFAULTS.concurrency, groupOf: _, ...settings }: ConsumerSettings,
    onAssigned?: () => void,
  ): LaneConsumer {
    const { service, kafka, log, consumers, restores, isTransient } = this.options;
    const name = `${service}.${group}`;
    const logFailure = laneFailures(log, { group: name, isTransient });
    const consumer = new LaneConsumer(kafka, log, {
      maxOutstanding: concurrency * WAITING,
      // a request is not repeated: its caller has given up
      restores: group === REQUESTS_GROUP ? undefined : restores,
      ...settings,
      group: name,
      topics: [...topics.keys()],
      concurrency,
      onFailure: (err, lane) => {
        if (!(err instanceof Repeat)) logFailure(err, lane);
      },
      onMissed: (missed) => consumers.missedTask(group, missed),
      onAssigned,
      onReplaced: (topic) => consumers.replaced(topic),
      handOver: () => consumers.handOver(group),
      isTransient,
      // the records of a batch come from one topic
      plan: (records) => topics.get(records[0]?.topic ?? '')?.(records) ?? [],
    });
    consumers.add(group, consumer);
    return consumer;
  }

  /** `Consumers` starts those that run on demand. */
  private logConsumers(): LogConsumer[] {
    const { service, kafka, log, consumers, isTransient } = this.options;
    const positions = new Map(this.entryPoints('positions').map(({ entry, handler }) => [entry.group, handler]));
    return this.entryPoints('follows').flatMap(({ entry: { topic, group, settings }, handler }) => {
      const positionsOf = positions.get(group);
      if (!positionsOf) throw new Error(`no method returns the positions of ${group}`);
      const { onDemand = false, ...rest } = settings;
      const create = () =>
        new LogConsumer(kafka, log, {
          ...rest,
          topic,
          group: `${service}.${group}`,
          ownGroup: onDemand,
          isTransient,
          positions: async (partitions) => (await positionsOf(partitions)) as Map<number, Position>,
          handle: async (...batch) => void (await handler(new Batch(...batch))),
        });
      if (onDemand) {
        consumers.addOnDemand(group, create);
        return [];
      }
      const consumer = create();
      consumers.addFollower(consumer);
      return [consumer];
    });
  }

  private handler(callback: MessageHandler): Handler {
    return (payload, record) => {
      const call = async (): Promise<unknown> =>
        lastValueFrom(this.transformToObservable(await callback(payload, record)), { defaultValue: undefined });
      const requestId = record?.header(HEADER.requestId);
      return requestId === undefined ? call() : withRequestId(requestId, call);
    };
  }
}
