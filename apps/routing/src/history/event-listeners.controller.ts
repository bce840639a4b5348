import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  type EventListeners,
  isId,
  type ListenerId,
  listEventListeners,
  ListenersOfEvent,
  NotFound,
  Unavailable,
  type UserId,
  type WebhookId,
} from '#contracts';
import { type EmittedEvent, requireEventId } from '#events';
import { type Emitter, EmitterDirectory } from '#emitters';
import { QueuePerKey } from '#limits';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import type { Attempt } from '../deliveries/delivery.js';
import { DeliveredLog } from '../deliveries/history/delivered-log.js';
import { RecordedEvents } from '../deliveries/history/recorded-events.js';
import { RoutingConfig } from '../routing.config.js';
import { listenersOf, type Traces } from './event-listeners.js';
import { EventListenersRepository, type StoredDelivery } from './event-listeners.repository.js';

/** Lists of one account that are made at a time: with very many webhooks, each occupies a connection to the database for seconds. */
const AT_ONCE = 2;
/** The attempts that are returned of an event: of further deliveries, only the last one, without its response. */
const ATTEMPTS_BYTES = 1024 * 1024;

/** Where an event went. */
@Controller()
export class EventListenersController {
  private readonly turns = new QueuePerKey<UserId>(() => AT_ONCE);

  constructor(
    private readonly repository: EventListenersRepository,
    private readonly directory: EmitterDirectory,
    private readonly recorded: RecordedEvents,
    private readonly deliveredLog: DeliveredLog,
    private readonly config: RoutingConfig,
  ) {}

  @Handles(listEventListeners)
  async list(@Payload() { owner_id, emitter_id, event_id }: ListenersOfEvent, @Ctx() record: LogRecord): Promise<EventListeners> {
    const place = requireEventId(event_id);
    const emitter = await this.directory.requireOwned(owner_id, emitter_id);
    const event = await this.recorded.look(owner_id, emitter_id, place);
    if (!event) throw new NotFound('event', event_id);
    return this.turns.run(owner_id, 'too many lists of deliveries of this account are waiting', async () => {
      if (Date.now() > deadlineOf(record)) throw new Unavailable('the request expired before its turn');
      const traces = await this.tracesOf(event, emitter);
      return listenersOf(event, traces, { now: Date.now(), failedKeptMs: this.config.failedKeptMs });
    });
  }

  private async tracesOf(event: EmittedEvent, { owner_id, created_at_ms }: Emitter): Promise<Traces> {
    const { emitterId, stream, place } = event;
    // what this process has delivered a moment ago
    await this.deliveredLog.flush(emitterId);
    const postponed = await this.repository.isPostponed(place);
    const deliveries = await withinLimit(this.repository.deliveries(owner_id, emitterId, place));
    const subscribers = await this.repository.subscribers(owner_id, emitterId, stream);
    const stored = new Set<ListenerId>(deliveries.map(({ webhook_id }) => webhook_id));
    const others = subscribers.map(({ listener_id }) => listener_id).filter((id) => isId('webhook', id) && !stored.has(id));
    // what was emitted before its emitter existed went to nobody
    const routed = place.ms >= created_at_ms ? others : [];
    const beyond = await this.repository.beyond(owner_id, emitterId, place, routed as WebhookId[]);
    return { postponed, deliveries, beyond, subscribers, replays: await this.repository.replays(owner_id, emitterId) };
  }
}

/** The first deliveries with all attempts, the others with the last one: a response has a limit, and so has the memory. */
async function withinLimit(deliveries: AsyncIterable<StoredDelivery>): Promise<StoredDelivery[]> {
  const limited: StoredDelivery[] = [];
  let bytes = 0;
  for await (const delivery of deliveries) {
    bytes += Buffer.byteLength(JSON.stringify(delivery.attempts));
    limited.push(bytes <= ATTEMPTS_BYTES ? delivery : { ...delivery, attempts: lastAttempt(delivery) });
  }
  return limited;
}

const lastAttempt = ({ attempts }: StoredDelivery): Attempt[] => attempts.slice(-1).map((attempt) => ({ ...attempt, response_body: null }));
