import { type BeforeApplicationShutdown, Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { EVENTS_TOPIC } from '#contracts';
import { Consumers, ConsumesBatch, type LogRecord, type Task } from '#messaging';
import { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { limitsOfLanes, RoutingConfig } from '../routing.config.js';
import { EVENTS_GROUP, MAX_OUTSTANDING } from './events-group.js';
import { MissedEvents } from './missed-events.js';
import { Router } from './router.js';

/** From this load on, receivers that are slow are spilled. */
const PRESSED = 0.5;

/** Reads the topic `events` and routes each event to its listeners. */
@Controller()
export class RoutesController implements BeforeApplicationShutdown {
  constructor(
    private readonly router: Router,
    private readonly dispatcher: Dispatcher,
    consumers: Consumers,
    missed: MissedEvents,
  ) {
    consumers.watchMissed(EVENTS_GROUP, (records) => missed.task(records));
    consumers.beforeHandOver(EVENTS_GROUP, () => dispatcher.handOver());
    dispatcher.watchPressure(() => consumers.load(EVENTS_GROUP) > PRESSED);
  }

  @ConsumesBatch({ topic: EVENTS_TOPIC }, EVENTS_GROUP, () => {
    const { concurrency, webhookConcurrency } = RoutingConfig.read();
    return {
      ...limitsOfLanes(concurrency),
      groupConcurrency: webhookConcurrency,
      maxOutstanding: MAX_OUTSTANDING,
      commitEveryMs: 50,
      // halves the number of fetches, for one or two milliseconds
      gatherMs: 3,
    };
  })
  plan(@Payload() records: LogRecord[]): Promise<Task[][]> {
    return this.router.plan(records);
  }

  /** A slow attempt continues after its event is committed. If it were interrupted, it would be repeated. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.dispatcher.idle();
  }
}
