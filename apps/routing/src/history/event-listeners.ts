import { type EventListener, type EventListeners, isId, kindOfId, type ListenerId, timeOfId, type WebhookId } from '#contracts';
import { comparePlaces, coversStream, type EmittedEvent, logPlaceOf, parseEventId, runKeyOf } from '#events';
import { inOrder } from '../deliveries/delivery.js';
import { deliveryIdOf } from '../deliveries/delivery-id.js';
import { DELIVERY_UNDER_WAY_MS } from '../deliveries/history/delivered.repository.js';
import { replayRunId } from '../replays/replayer.js';
import type { EmitterReplay, StoredDelivery, Subscriber } from './event-listeners.repository.js';

/** An event this old that has neither run nor waits for one does not get one any more: it was part of a loop, or its run is forgotten. */
const RUN_UNDER_WAY_MS = 3_600_000;
/** Until then the runtime knows of each run whether it has ended. */
const RUNS_KNOWN_MS = 7 * 24 * 3_600_000;

/** The traces that an event has left in routing. */
export interface Traces {
  /** It waits for capacity: its present listeners will get it. */
  postponed: boolean;
  deliveries: StoredDelivery[];
  /** Those of the subscribers without a stored delivery to which later events of the emitter were delivered: this one was, too. */
  beyond: ReadonlySet<WebhookId>;
  subscribers: Subscriber[];
  /** Newest first. */
  replays: EmitterReplay[];
}

/**
 * Where the event went: first what happened (deliveries, replays), then what follows from the subscriptions of that time, as far as they are known.
 * failedKeptMs: until then, each delivery that was given up is stored.
 */
export function listenersOf(
  event: EmittedEvent,
  { postponed, deliveries, beyond, subscribers, replays }: Traces,
  { now, failedKeptMs }: { now: number; failedKeptMs: number },
): EventListeners {
  const { place } = event;
  const age = now - place.ms;
  const listeners = new Map<ListenerId, EventListener>();
  const add = (id: ListenerId, status: EventListener['status'], more: Partial<EventListener> = {}) =>
    listeners.set(id, { listener_id: id, kind: kindOfId(id), delivery_id: null, run_id: null, status, attempts: [], ...more });
  for (const { webhook_id, status, attempts } of deliveries)
    add(webhook_id, status, { delivery_id: deliveryIdOf(place, webhook_id), attempts: attempts.map(inOrder) });
  const replayed: EventListeners['runs']['replayed'] = [];
  for (const replay of replays.filter((each) => covers(each, event)).reverse()) {
    const { id, listener_id } = replay;
    if (isId('source', listener_id)) replayed.push({ run_id: replayRunId(id, event, listener_id), source_id: listener_id });
    else if (isBehind(replay, event)) add(listener_id, 'succeeded');
  }
  for (const subscriber of subscribers) {
    if (listeners.has(subscriber.listener_id)) continue;
    const isDelivered = age < failedKeptMs && beyond.has(subscriber.listener_id as WebhookId);
    const status = postponed ? expectedStatus(subscriber) : supposedStatus(subscriber, { at: place.ms, age, isDelivered });
    if (!status) continue;
    const { listener_id: id } = subscriber;
    add(id, status, isId('webhook', id) && status === 'succeeded' ? { delivery_id: deliveryIdOf(place, id) } : {});
  }
  return { listeners: [...listeners.values()], runs: { run_key: runKeyOf(event), replayed } };
}

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
  { at, age, isDelivered }: { at: number; age: number; isDelivered: boolean },
): EventListener['status'] | undefined {
  const { listener_id: id, subscription_id, active } = subscriber;
  if (timeOfId(subscription_id) > at) return undefined;
  const wasActive = wasActiveAt(subscriber, at);
  if (wasActive === false) return 'skipped';
  if (wasActive === undefined) return undefined;
  if (isId('workflow', id)) return 'succeeded';
  if (isId('webhook', id)) {
    if (isDelivered) return 'succeeded';
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
