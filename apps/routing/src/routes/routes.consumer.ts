import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EVENTS_TOPIC } from '#contracts';
import { KAFKA, type KafkaClient, LaneConsumer } from '#messaging';
import { LOG, type Log } from '#observability';
import { Dispatcher } from '../deliveries/dispatcher.js';
import { RoutingConfig } from '../routing.config.js';
import { Router } from './router.js';

/** Above this many outstanding deliveries no more events are taken: what bounds the memory. */
const MAX_OUTSTANDING = 3000;
/** What a crash repeats. */
const COMMIT_EVERY_MS = 50;
/** What an event waits for others at most: half of the fetches for a millisecond or two. */
const GATHER_MS = 3;

/** Reads the topic `events` and sends each event on its ways. */
@Injectable()
export class RoutesConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly consumer: LaneConsumer;

  constructor(
    @Inject(KAFKA) kafka: KafkaClient,
    @Inject(LOG) log: Log,
    router: Router,
    private readonly dispatcher: Dispatcher,
    config: RoutingConfig,
  ) {
    this.consumer = new LaneConsumer(kafka, log, {
      group: 'routing.events',
      topics: [EVENTS_TOPIC],
      concurrency: config.concurrency,
      groupConcurrency: config.webhookConcurrency,
      maxOutstanding: MAX_OUTSTANDING,
      commitEveryMs: COMMIT_EVERY_MS,
      gatherMs: GATHER_MS,
      plan: (records) => router.plan(records),
    });
    dispatcher.watchPressure(() => this.consumer.intake.lanes.outstanding > MAX_OUTSTANDING / 2);
  }

  onApplicationBootstrap(): Promise<void> {
    return this.consumer.start();
  }

  /** A slow attempt goes on after its event is committed; cut off, it would be repeated. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.consumer.stop();
    await this.dispatcher.idle();
  }
}
