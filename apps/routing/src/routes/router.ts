import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { EVENTS_TOPIC, isId, OUTBOX_HEADER } from '#contracts';
import { coversStream, type EmittedEvent, eventIdOf, EVERY_STREAM, type MalformedRecord, readEventRecord, WAITING_STREAM } from '#events';
import { Lanes, type LanesOptions, type LogRecord, Publisher, sendToDeadLetter, type Task } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { Stats } from '#stats';
import { deliveryOf } from '../deliveries/delivery.js';
import { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { RoutingConfig } from '../routing.config.js';
import { errorFact, malformedReport } from '../error-records.js';
import { isTooWide, loopReport, mayTrigger, runRecord, TriggerBatch, workflowRecord } from './triggers.js';
import { type Match, MatchRepository } from './match.repository.js';

const routed = counter('events_routed_total', 'Events that were matched with listeners.');
const repeats = counter(
  'events_repeated_by_relay_total',
  'Second copies of events, sent by a relay that was interrupted, which were not routed.',
);
const loops = counter(
  'events_looping_total',
  'Events that triggered nothing because they had passed through too many sources and workflows.',
);

/** Turns records of the topic `events` into tasks for their listeners. */
@Injectable()
export class Router {
  private readonly unknownEmitters: UnknownEmitters;
  private readonly repeated = new RepeatedEmits();
  /** Those that were reported. */
  private readonly wideTrees = new LRUCache<string, true>({ max: 10_000 });

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly publisher: Publisher,
    private readonly matching: MatchRepository,
    private readonly dispatcher: Dispatcher,
    private readonly config: RoutingConfig,
    private readonly stats: Stats,
  ) {
    this.unknownEmitters = new UnknownEmitters({
      groupConcurrency: config.webhookConcurrency,
      onFailure: (error, lane) => log.error({ lane, err: error }, 'lane.task-failed'),
    });
  }

  /** The tasks of records of one partition, in order. */
  async plan(records: LogRecord[]): Promise<Task[][]> {
    const tasks: Task[][] = records.map(() => []);
    const events: { event: EmittedEvent; tasks: Task[] }[] = [];
    records.forEach((record, index) => {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes });
      const own = tasks[index] as Task[];
      if (read.kind === 'malformed') own.push(this.deadLetter(record, read));
      // a waiting emit is not emitted yet
      else if (read.kind === 'event' && read.stream !== WAITING_STREAM) {
        if (this.repeated.isRepeated(record, read)) repeats.inc();
        else events.push({ event: read, tasks: own });
      }
    });
    const matches = await this.matching.match(events.map(({ event }) => event));
    const triggers = new TriggerBatch(this.publisher);
    const introduce = this.introduction(events.filter((_, index) => !matches[index]).map(({ event }) => event));
    // one lane per partition, so that batches keep their order
    const triggerLane = `triggers ${records[0]?.partition}`;
    events.forEach(({ event, tasks: own }, index) => {
      const match = matches[index];
      if (match && !this.unknownEmitters.has(event.emitterId)) own.push(...this.tasksOf(event, match, triggers, triggerLane));
      else
        own.push(
          this.unknownEmitters.task(event.emitterId, async () => this.tasksOfUnknown(event, match ?? (await introduce()).get(event))),
        );
    });
    return tasks;
  }

  /** Looks up all unknown emitters of a batch at once, when the first of their events has its turn; again after a failure. */
  private introduction(events: EmittedEvent[]): () => Promise<Map<EmittedEvent, Match | undefined>> {
    let asking: Promise<Map<EmittedEvent, Match | undefined>> | undefined;
    const ask = async () => {
      try {
        const matches = await this.matching.introduce(events);
        return new Map(events.map((event, index) => [event, matches[index]]));
      } catch (error) {
        asking = undefined;
        throw error;
      }
    };
    return () => (asking ??= ask());
  }

  private tasksOfUnknown(event: EmittedEvent, match: Match | undefined): Task[] {
    return match ? this.tasksOf(event, match, new TriggerBatch(this.publisher), `triggers ${event.emitterId}`) : [];
  }

  /** The tasks of an event: one per webhook, and one for all records to Kafka. */
  private tasksOf(event: EmittedEvent, match: Match, triggers: TriggerBatch, triggerLane: string): Task[] {
    routed.inc();
    if (coversStream(EVERY_STREAM, event.stream)) this.stats.countEvent(event.emitterId);
    const tasks: Task[] = [];
    if (this.trigger(event, match, triggers)) tasks.push({ lane: triggerLane, run: () => triggers.send() });
    for (const { id, version } of match.listeners) {
      if (isId('webhook', id) && version !== null) tasks.push(this.dispatcher.firstAttempt(deliveryOf(event, id), version));
    }
    return tasks;
  }

  /** Adds the event's records for sources, workflows and the mail. Returns false if there are none. */
  private trigger(event: EmittedEvent, { ownerId, listeners }: Match, batch: TriggerBatch): boolean {
    const fact = errorFact(event, ownerId);
    if (fact) batch.add(fact);
    const triggered = listeners.filter(({ id }) => !isId('webhook', id));
    if (triggered.length === 0) return fact !== undefined;
    if (mayTrigger(event, triggered.length)) {
      for (const { id } of triggered) {
        if (isId('source', id)) batch.add(runRecord(event, ownerId, id, { triggered: triggered.length }));
        else if (isId('workflow', id)) batch.add(workflowRecord(event, id, triggered.length));
      }
      return true;
    }
    loops.inc();
    // of a wide tree, one event of each emitter is enough: its events come through one partition, and so to one replica
    const tree = isTooWide(event, triggered.length) && event.cause ? `${event.cause.root} ${event.emitterId}` : undefined;
    const report = tree !== undefined && this.wideTrees.has(tree) ? undefined : loopReport(event, ownerId, triggered.length);
    if (!report) return fact !== undefined;
    if (tree !== undefined) this.wideTrees.set(tree, true);
    this.log.warn({ emitter_id: event.emitterId, event_id: eventIdOf(event.place), hops: event.hops }, 'event.loop-detected');
    batch.add({ topic: EVENTS_TOPIC, ...report });
    return true;
  }

  private deadLetter(record: LogRecord, malformed: MalformedRecord): Task {
    const { reason } = malformed;
    const report = malformedReport(record, malformed);
    return {
      lane: `malformed ${record.partition}`,
      run: async () => {
        await sendToDeadLetter(this.publisher, 'routing', record, reason);
        if (report) await this.publisher.send([{ topic: EVENTS_TOPIC, ...report }]);
        this.log.warn({ partition: record.partition, offset: record.offset, key: record.key?.slice(0, 100), reason }, 'event.malformed');
      },
    };
  }
}

const REMEMBERED = 20_000;

/**
 * Recognises records that a relay has sent twice: its process died after Kafka had the records and before they left the outbox. Both copies have the
 * same emit id and, because of their key, the same partition. Only records of an outbox are remembered, and only the newest ones: the second copy
 * follows within seconds.
 */
class RepeatedEmits {
  private readonly places = new LRUCache<string, number>({ max: REMEMBERED });

  /** True for the second copy. The first one remains the first if it is read again, after a rebalance or a failure. */
  isRepeated(record: LogRecord, { emitterId, stream, emitId, place }: EmittedEvent): boolean {
    if (record.header(OUTBOX_HEADER) === undefined) return false;
    const emit = `${emitterId} ${stream} ${emitId}`;
    const first = this.places.get(emit);
    if (first !== undefined && first < place.seq) return true;
    this.places.set(emit, place.seq);
    return false;
  }
}

/** The maximum number of tasks in progress for events of unknown emitters. */
const UNKNOWN_CONCURRENCY = 64;

/**
 * Events of emitters that routing does not know yet. Looking them up in the catalog must not delay other events, so each such emitter has a separate
 * lane. Every further event of the emitter takes this lane until it is empty; otherwise it would overtake them.
 */
class UnknownEmitters {
  private readonly waiting = new Map<string, number>();
  /** The resulting tasks run in separate lanes. The emitter's lane waits until they have ended. */
  private readonly lanes: Lanes;

  constructor(options: Pick<LanesOptions, 'groupConcurrency' | 'onFailure'>) {
    this.lanes = new Lanes({ concurrency: UNKNOWN_CONCURRENCY, ...options });
  }

  has(emitterId: string): boolean {
    return this.waiting.has(emitterId);
  }

  /** `introduce` determines the tasks of the event. It is retried until it does not throw. */
  task(emitterId: string, introduce: () => Promise<Task[]>): Task {
    this.waiting.set(emitterId, (this.waiting.get(emitterId) ?? 0) + 1);
    return {
      lane: `unknown-emitter ${emitterId}`,
      run: async () => {
        const tasks = await introduce();
        await Promise.all(tasks.map((task) => new Promise<void>((resolve) => this.lanes.push(task, resolve))));
        this.ended(emitterId);
      },
      drop: () => this.ended(emitterId),
    };
  }

  private ended(emitterId: string): void {
    const left = (this.waiting.get(emitterId) ?? 1) - 1;
    if (left === 0) this.waiting.delete(emitterId);
    else this.waiting.set(emitterId, left);
  }
}
