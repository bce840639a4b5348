import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type EventListener,
  Invalid,
  isId,
  type ListenerId,
  listEventListeners,
  ListenersOfEvent,
  NotFound,
  type SourceId,
  type WebhookId,
} from '#contracts';
import { type EmittedEvent, parseEventId } from '#events';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { DeliveredLog } from '../deliveries/history/delivered.repository.js';
import { deliveryIdOf } from '../deliveries/delivery.js';
import { runIdOf } from '../routes/triggers.js';
import { EventListenersRepository, type StoredDelivery, type Subscriber } from './event-listeners.repository.js';
import { RecordedEvents } from '../deliveries/history/recorded-events.js';

/** An event this old that has no stored delivery to a webhook was delivered long ago, or before the webhook subscribed. */
const UNDER_WAY_MS = 60_000;

/** Where an event went. */
@Controller()
export class EventListenersController {
  constructor(
    private readonly repository: EventListenersRepository,
    private readonly directory: EmitterDirectory,
    private readonly recorded: RecordedEvents,
    private readonly log: DeliveredLog,
  ) {}

  @Handles(listEventListeners)
  async list(@Payload() { owner_id, emitter_id, event_id }: ListenersOfEvent): Promise<EventListener[]> {
    const place = parseEventId(event_id);
    if (!place) throw new Invalid([{ field: 'event_id', message: 'event_id must be an event id, <milliseconds>-<sequence>' }]);
    if (!(await this.directory.findOwned(owner_id, emitter_id)))
      throw new NotFound(isId('source', emitter_id) ? 'source' : 'workflow', emitter_id);
    const event = await this.recorded.look(owner_id, emitter_id, place);
    if (!event) throw new NotFound('event', event_id);
    // what this process has delivered a moment ago
    await this.log.flush();
    const [deliveries, subscribers] = await Promise.all([
      this.repository.deliveries(owner_id, emitter_id, place),
      this.repository.subscribers(owner_id, emitter_id, event.stream),
    ]);
    return listenersOf(event, deliveries, subscribers, Date.now());
  }
}

/** A delivery that is stored as succeeded and as parked is parked again. */
export function listenersOf(event: EmittedEvent, deliveries: StoredDelivery[], subscribers: Subscriber[], now: number): EventListener[] {
  const listeners = new Map<ListenerId, EventListener>();
  const webhook = (id: WebhookId, status: EventListener['status'], more: Partial<EventListener> = {}) =>
    listeners.set(id, { listener_id: id, kind: 'webhook', delivery_id: null, run_id: null, status, attempts: [], ...more });
  for (const { webhook_id, status, attempts } of deliveries)
    webhook(webhook_id, status, { delivery_id: deliveryIdOf(event.place, webhook_id), attempts });
  for (const { listener_id: id, active } of subscribers) {
    if (isId('webhook', id)) {
      if (listeners.has(id)) continue;
      if (!active) webhook(id, 'skipped');
      else if (now - event.place.ms < UNDER_WAY_MS) webhook(id, 'pending');
    } else {
      const kind = isId('source', id) ? 'source' : 'workflow';
      const run_id = active && kind === 'source' ? runIdOf(event, id as SourceId) : null;
      const status = !active ? 'skipped' : kind === 'source' ? 'pending' : 'succeeded';
      listeners.set(id, { listener_id: id, kind, delivery_id: null, run_id, status, attempts: [] });
    }
  }
  return [...listeners.values()];
}
