import type { UserId, WebhookId } from '#contracts';
import { eventIdOf } from '#events';
import type { Delivery, Outcome } from '../delivery.js';
import { Breaker } from './breaker.js';

/** A delivery in a lane whose attempt has not begun. */
export interface Waiting {
  delivery: Delivery;
  /** When it began to wait, by the RunningClock. */
  since: number;
  /** False while another process may deliver it. */
  isOwn(): boolean;
  /** There is nothing left to attempt: it has been parked, together with others, or its event was deleted. */
  ended: boolean;
  /** Set when the attempt has ended: stores its outcome. If that fails, the lane's next try does only this. */
  rest?: () => Promise<void>;
}

/** The weight of a new duration in the smoothed mean: of one receiver, and of all. */
const SMOOTHING = { own: 0.2, all: 0.01 };

/** The state of one receiver in this process. */
export class ReceiverState {
  readonly breaker = new Breaker();
  /** That of the attempt that has begun last. */
  private url: string | undefined;
  /** In the order of arrival. */
  readonly waiting = new Set<Waiting>();
  /** An operation in progress that parks the waiting deliveries. */
  parking: Promise<void> | undefined;
  /** The number of attempts in progress and other users of this state. */
  held = 0;
  /** The smoothed mean duration of an attempt, in ms. */
  duration = 0;
  /** Known with its first delivery. */
  ownerId: UserId | undefined;
  /** When it was last spilled because it is slow, in ms: not all of its waiting deliveries are parked at once. */
  spilledAt = -Infinity;

  constructor(
    readonly webhookId: WebhookId,
    private readonly all: { duration: number },
  ) {}

  /** The time that the waiting deliveries take at the present pace, in ms. */
  get queueMs(): number {
    return (this.waiting.size * this.duration) / Math.max(this.held, 1);
  }

  addDuration(durationMs: number): void {
    this.duration = smoothed(this.duration, durationMs, SMOOTHING.own);
    this.all.duration = smoothed(this.all.duration, durationMs, SMOOTHING.all);
  }

  /** An attempt at this URL begins. Failures of a former URL say nothing about it. */
  begins(url: string): void {
    if (url !== this.url) this.breaker.reset();
    this.url = url;
  }

  /**
   * Counts the outcome of an attempt at a URL, unless it is a former one. Returns whether it is one failure too many: the receiver is failing, not the
   * events. `again`: the delivery has failed before.
   */
  count(url: string, { place }: Delivery, { verdict, timeout, attempt }: Outcome, again: boolean): boolean {
    const { breaker } = this;
    if (url !== this.url) return false;
    if (verdict === 'delivered') breaker.reset();
    if (verdict !== 'failed') return false;
    breaker.failedWith({ eventId: eventIdOf(place), timeout, again: again && attempt.status_code !== null });
    const opens = breaker.open;
    // from here on the open breaker is a state of the store, which all replicas share
    if (opens) breaker.reset();
    return opens;
  }

  /** A new state would be as good. */
  get idle(): boolean {
    return this.held === 0 && this.waiting.size === 0 && this.parking === undefined && this.breaker.forgettable;
  }
}

const smoothed = (mean: number, value: number, share: number): number => (mean === 0 ? value : mean + share * (value - mean));

/**
 * An account is greedy with more than this share of the waiting deliveries, if its attempts take this long on average, or if another account had deliveries
 * this recently, which may be behind those of the greedy one, unread.
 */
const GREEDY = { share: 0.5, durationMs: 300, othersWithinMs: 30_000 };

const DELETE_IDLE_EVERY_MS = 1000;

/** The receivers that this process delivers to. */
export class ReceiverStates {
  private readonly states = new Map<WebhookId, ReceiverState>();
  private readonly all = { duration: 0 };
  private deletedIdleAt = -Infinity;
  /** When each account had its last delivery, in ms. */
  private readonly lastDelivery = new Map<UserId, number>();

  /** The smoothed mean duration of an attempt to any receiver, in ms. */
  get duration(): number {
    return this.all.duration;
  }

  of(webhookId: WebhookId): ReceiverState {
    let state = this.states.get(webhookId);
    if (!state) this.states.set(webhookId, (state = new ReceiverState(webhookId, this.all)));
    return state;
  }

  /** The receiver of a new delivery. */
  see(webhookId: WebhookId, ownerId: UserId): ReceiverState {
    const state = this.of(webhookId);
    state.ownerId = ownerId;
    this.lastDelivery.set(ownerId, performance.now());
    return state;
  }

  /** Whether an account other than this one had a delivery recently. */
  hasOthersThan(account: UserId): boolean {
    const recently = performance.now() - GREEDY.othersWithinMs;
    for (const [ownerId, at] of this.lastDelivery) {
      // so that nobody looks at it again
      if (at < recently) this.lastDelivery.delete(ownerId);
      else if (ownerId !== account) return true;
    }
    return false;
  }

  [Symbol.iterator](): Iterator<ReceiverState> {
    return this.states.values();
  }

  /**
   * If one account has more than half of all waiting deliveries, because its receivers are slow or many, and others may have to wait for it: those of its
   * receivers for which deliveries wait, however few for each. Otherwise none. An account that is alone keeps its speed.
   */
  ofGreedyAccount(): ReceiverState[] {
    for (const [ownerId, at] of this.lastDelivery) if (at < performance.now() - GREEDY.othersWithinMs) this.lastDelivery.delete(ownerId);
    const accounts = Map.groupBy(this.states.values(), ({ ownerId }) => ownerId);
    const waiting = (states: ReceiverState[]) => states.reduce((sum, state) => sum + state.waiting.size, 0);
    const all = waiting([...this.states.values()]);
    for (const states of accounts.values()) {
      if (waiting(states) <= GREEDY.share * all) continue;
      const known = states.map(({ duration }) => duration).filter((duration) => duration > 0);
      const mean = known.reduce((sum, duration) => sum + duration, 0) / Math.max(known.length, 1);
      return mean >= GREEDY.durationMs || this.lastDelivery.size > 1 ? states.filter((state) => state.waiting.size > 0) : [];
    }
    return [];
  }

  /** Deletes the states that are idle, at most once a second: there may be many others. */
  deleteIdle(): void {
    if (performance.now() - this.deletedIdleAt < DELETE_IDLE_EVERY_MS) return;
    this.deletedIdleAt = performance.now();
    for (const state of this.states.values()) this.deleteIfIdle(state);
  }

  deleteIfIdle({ idle, webhookId }: ReceiverState): void {
    if (idle) this.states.delete(webhookId);
  }
}
