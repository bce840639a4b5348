import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type EventListener,
  type EventListeners,
  Invalid,
  isId,
  type ListenerId,
  listEventListeners,
  ListenersOfEvent,
  NotFound,
  timeOfId,
  type WebhookId,
} from '#contracts';
import { comparePlaces, coversStream, type EmittedEvent, logPlaceOf, parseEventId, runKeyOf } from '#events';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { DELIVERY_UNDER_WAY_MS, DeliveredLog } from '../deliveries/history/delivered.repository.js';
import { inOrder } from '../deliveries/delivery.js';
import { deliveryIdOf } from '../deliveries/delivery-id.js';
import { replayRunId } from '../replays/replayer.js';
import { type EmitterReplay, EventListenersRepository, type StoredDelivery, type Subscriber } from './event-listeners.repository.js';
import { RecordedEvents } from '../deliveries/history/recorded-events.js';

/** Until then each delivery that was given up is stored. */
const FAILURES_KNOWN_MS = 7 * 24 * 3_600_000;
/** An event this old that has neither run nor waits for one does not get one any more: it was part of a loop, or its run is forgotten. */
const RUN_UNDER_WAY_MS = 3_600_000;
/** Until then the runtime knows of each run whether it has ended. */
const RUNS_KNOWN_MS = 7 * 24 * 3_600_000;

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
  async list(@Payload() { owner_id, emitter_id, event_id }: ListenersOfEvent): Promise<EventListeners> {
    const place = parseEventId(event_id);
    if (!place) throw new Invalid([{ field: 'event_id', message: 'event_id must be an event id, <milliseconds>-<sequence>' }]);
    const emitter = await this.directory.findOwned(owner_id, emitter_id);
    if (!emitter) throw new NotFound(isId('source', emitter_id) ? 'source' : 'workflow', emitter_id);
    const event = await this.recorded.look(owner_id, emitter_id, place);
    if (!event) throw new NotFound('event', event_id);
    // what this process has delivered a moment ago
    await this.log.flush();
    const postponed = await this.repository.isPostponed(place);
    const [deliveries, beyond, subscribers, replays] = await Promise.all([
      this.repository.deliveries(owner_id, emitter_id, place),
      this.repository.beyond(owner_id, emitter_id, place),
      this.repository.subscribers(owner_id, emitter_id, event.stream),
      this.repository.replays(owner_id, emitter_id),
    ]);
    // what was emitted before its emitter existed went to nobody
    const routed = place.ms >= emitter.created_at_ms ? beyond : new Set<WebhookId>();
    return listenersOf(event, { postponed, deliveries, beyond: routed, subscribers, replays }, Date.now());
  }
}

/** The traces that an event has left in routing. */
export interface Traces {
  /** It waits for capacity: its present listeners will get it. */
  postponed: boolean;
  deliveries: StoredDelivery[];
  /** The webhooks to which later events of the emitter were delivered: without a stored delivery, this one was, too. */
  beyond: ReadonlySet<WebhookId>;
  subscribers: Subscriber[];
  /** Newest first. */
  replays: EmitterReplay[];
}

/**
 * Where the event went: first what happened (deliveries, replays), then what follows from the subscriptions of that time, as far as they are known.
 * A delivery that is stored as succeeded and as parked is parked again.
 */
export function listenersOf(
  event: EmittedEvent,
  { postponed, deliveries, beyond, subscribers, replays }: Traces,
  now: number,
): EventListeners {
  const { place } = event;
  const listeners = new Map<ListenerId, EventListener>();
  const add = (id: ListenerId, status: EventListener['status'], more: Partial<EventListener> = {}) =>
    listeners.set(id, { listener_id: id, kind: kindOf(id), delivery_id: null, run_id: null, status, attempts: [], ...more });
  for (const { webhook_id, status, attempts } of deliveries)
    add(webhook_id, status, { delivery_id: deliveryIdOf(place, webhook_id), attempts: attempts.map(inOrder) });
  const replayed: EventListeners['runs']['replayed'] = [];
  for (const replay of replays.filter((each) => covers(each, event)).reverse()) {
    const { id, listener_id } = replay;
    if (isId('source', listener_id)) replayed.push({ run_id: replayRunId(id, place), source_id: listener_id });
    else if (isBehind(replay, event)) add(listener_id, 'succeeded');
  }
  for (const subscriber of subscribers) {
    if (listeners.has(subscriber.listener_id)) continue;
    const status = postponed
      ? expectedStatus(subscriber)
      : supposedStatus(subscriber, { at: place.ms, age: now - place.ms, isBeyond: beyond.has(subscriber.listener_id as WebhookId) });
    if (!status) continue;
    const { listener_id: id } = subscriber;
    add(id, status, isId('webhook', id) && status === 'succeeded' ? { delivery_id: deliveryIdOf(place, id) } : {});
  }
  return { listeners: [...listeners.values()], runs: { run_key: runKeyOf(event), replayed } };
}

const kindOf = (id: ListenerId): EventListener['kind'] => (isId('webhook', id) ? 'webhook' : isId('source', id) ? 'source' : 'workflow');

const covers = ({ stream, from_id, to_id }: EmitterReplay, event: EmittedEvent): boolean => {
  const [from, to] = [parseEventId(from_id), parseEventId(to_id)];
  if (!from || !to || !coversStream(stream, event.stream)) return false;
  return comparePlaces(from, event.place) <= 0 && comparePlaces(event.place, to) <= 0;
};

/** Whether the replay has delivered the event. */
function isBehind({ offsets }: EmitterReplay, { place }: EmittedEvent): boolean {
  const { partition, offset } = logPlaceOf(place);
  return (offsets[partition] ?? 0) > offset;
}

const expectedStatus = ({ active }: Subscriber): EventListener['status'] | undefined => (active ? 'pending' : undefined);

/** The status at a listener of which nothing is stored. Undefined: it did not get the event, or that is not known any more. */
function supposedStatus(
  subscriber: Subscriber,
  { at, age, isBeyond }: { at: number; age: number; isBeyond: boolean },
): EventListener['status'] | undefined {
  const { listener_id: id, subscription_id, active } = subscriber;
  if (timeOfId(subscription_id) > at) return undefined;
  const wasActive = wasActiveAt(subscriber, at);
  if (wasActive === false) return 'skipped';
  if (wasActive === undefined) return undefined;
  if (isId('workflow', id)) return 'succeeded';
  if (isId('webhook', id)) {
    if (isBeyond && age < FAILURES_KNOWN_MS) return 'succeeded';
    return age < DELIVERY_UNDER_WAY_MS ? 'pending' : undefined;
  }
  // the runs that wait for a source are dropped when it is deactivated
  if (!active) return age < RUNS_KNOWN_MS ? 'skipped' : undefined;
  return age < RUN_UNDER_WAY_MS ? 'pending' : undefined;
}

/** Undefined: it has been switched too often since then. */
function wasActiveAt({ active, activated_at_ms: on, deactivated_at_ms: off }: Subscriber, at: number): boolean | undefined {
  if (at >= Math.max(on, off)) return active;
  return at >= Math.min(on, off) && on !== off ? !active : undefined;
}
