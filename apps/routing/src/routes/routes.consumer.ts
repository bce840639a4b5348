import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Kafka } from 'kafkajs';
import { type EmittedEvent, EVENTS_TOPIC, isId, readEventRecord, WAITING_STREAM } from '#contracts';
import { KAFKA, LaneConsumer, type LogRecord, Publisher, sendToDeadLetter, type Task } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { deliveryOf } from '../deliveries/delivery.js';
import { Dispatcher } from '../deliveries/dispatcher.js';
import { RoutingConfig } from '../routing.config.js';
import { loopReport, mayTrigger } from './loop-guard.js';
import { type Match, MatchService } from './match.service.js';
import { TriggerBatch } from './trigger-batch.js';
import { runRecord, workflowRecord } from './trigger-records.js';

const routed = counter('events_routed_total', 'Events that were matched with their listeners.');
const loops = counter('events_looping_total', 'Events that came through so many sources and workflows that they trigger no more.');
/** Above this many outstanding deliveries no more events are taken: what bounds the memory. */
const MAX_OUTSTANDING = 3000;
/** Attempts in flight to one webhook. */
const LANES_PER_LISTENER = 4;
/** What a crash repeats. */
const COMMIT_EVERY_MS = 50;

/** Reads the topic `events` and sends each event on its ways: the step from the log to the listeners. */
@Injectable()
export class RoutesConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;

  constructor(
    @Inject(KAFKA) kafka: Kafka,
    @Inject(LOG) private readonly log: Log,
    private readonly publisher: Publisher,
    private readonly matching: MatchService,
    private readonly dispatcher: Dispatcher,
    private readonly config: RoutingConfig,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'routing.events',
      topics: [EVENTS_TOPIC],
      concurrency: config.concurrency,
      groupConcurrency: LANES_PER_LISTENER,
      maxOutstanding: MAX_OUTSTANDING,
      commitEveryMs: COMMIT_EVERY_MS,
      plan: (records) => this.plan(records),
    });
    dispatcher.useLanes(this.consumer.intake.lanes);
  }

  onApplicationBootstrap(): Promise<void> {
    return this.consumer.start();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.consumer.stop();
  }

  private async plan(records: LogRecord[]): Promise<Task[][]> {
    const tasks: Task[][] = records.map(() => []);
    const events: EmittedEvent[] = [];
    const indexes: number[] = [];
    records.forEach((record, index) => {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes });
      if (read.kind === 'malformed') tasks[index]?.push(this.putAside(record, read.reason));
      // what waits for its time isn't emitted yet
      if (read.kind !== 'event' || read.stream === WAITING_STREAM) return;
      events.push(read);
      indexes.push(index);
    });
    const matches = await this.matching.match(events);
    const triggers = new TriggerBatch(this.publisher);
    // one lane for all of a partition: batch after batch
    const lane = `triggers ${records[0]?.partition}`;
    events.forEach((event, n) => {
      const match = matches[n];
      if (!match) return;
      routed.inc();
      const own = tasks[indexes[n] ?? -1];
      if (this.trigger(event, match, triggers)) own?.push({ lane, run: () => triggers.send() });
      for (const { id, version } of match.listeners) {
        if (isId('webhook', id) && version !== null) own?.push(this.dispatcher.firstAttempt(deliveryOf(event, id), version));
      }
    });
    return tasks;
  }

  /** Adds what the event sends to sources and workflows. False when that is nothing. */
  private trigger(event: EmittedEvent, { ownerId, listeners }: Match, batch: TriggerBatch): boolean {
    const triggered = listeners.filter(({ id }) => !isId('webhook', id));
    if (triggered.length === 0) return false;
    if (mayTrigger(event)) {
      for (const { id } of triggered)
        batch.add(isId('workflow', id) ? workflowRecord(event, id) : runRecord(event, ownerId, id as `dc_${string}`));
      return true;
    }
    loops.inc();
    const report = loopReport(event, ownerId);
    if (!report) return false;
    this.log.warn(
      { emitter_id: event.emitterId, event_id: `${event.place.ms}-${event.place.seq}`, hops: event.hops },
      'event.loop-detected',
    );
    batch.add({ topic: EVENTS_TOPIC, ...report });
    return true;
  }

  private putAside(record: LogRecord, reason: string): Task {
    return {
      lane: `malformed ${record.partition}`,
      run: async () => {
        await sendToDeadLetter(this.publisher, 'routing', record, reason);
        this.log.warn({ partition: record.partition, offset: record.offset, key: record.key?.slice(0, 100), reason }, 'event.malformed');
      },
    };
  }
}
