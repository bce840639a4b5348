import type { EmitterId } from '#contracts';
import { eventIdOf } from '#events';
import type { Lanes } from '#messaging';
import type { Log } from '#observability';
import type { Attempts } from '../attempt/attempts.js';
import type { Outcome } from '../delivery.js';
import type { ReceiverState } from '../receivers/receiver-states.js';
import type { Target, Targets } from '../receivers/targets.js';
import type { Claim, Except, Parked } from '../store/delivery-store.js';
import type { BacklogLooks } from './backlog-looks.js';
import { SettlementBatch } from './settlement-batch.js';
import { type Ended, type Settlements, settlementOf, stepOf } from './settlements.js';

/** The number of deliveries that are taken from a backlog at a time. */
const TAKEN = 200;
/** How long deliveries wait here at most. Then they are taken again, because their events may be deleted meanwhile, and because they use memory. */
const WAIT_MS = 1000;
/**
 * While an attempt takes longer, and much longer than the receiver usually does, no further deliveries of its emitter are taken: they would wait here in the
 * place of others.
 */
const HELD_UP = { leastMs: 200, mostMs: WAIT_MS, factor: 4 };

export interface Parts {
  log: Log;
  /** Of all backlogs. */
  lanes: Lanes;
  /** The attempts in flight to one webhook. */
  concurrency: number;
  looks: BacklogLooks;
  targets: Targets;
  attempts: Attempts;
  settlements: Settlements;
}

export interface LeasedBacklog {
  claim: Claim;
  receiver: ReceiverState;
  /** Whether to begin no further attempts. */
  isOver: () => boolean;
  /** These deliveries are not in memory any more. `attempted`: their attempts have begun. */
  dropped: (parked: Parked[], attempted: boolean) => void;
}

/** A delivery whose attempt has begun. */
interface Begun extends Ended {
  parked: Parked;
}

/**
 * Attempts deliveries that were taken from one backlog, fresh ones in order per emitter:
 *
 *   waiting ──► in progress ──► outcome stored
 *      └─ for too long ─► left to the store, and taken again
 */
export class BacklogAttempts {
  /** Those that wait, in lanes: fresh ones of an emitter, in order, or one retry. The lanes take turns. */
  private readonly waiting = new Map<string, Parked[]>();
  /** Those whose attempts have begun, until their outcomes are stored. */
  private readonly begun = new Map<string, Parked>();
  /** The emitters of fresh deliveries in progress, and since when. */
  private readonly emitters = new Map<EmitterId, number>();
  private readonly batch: SettlementBatch<Begun>;
  private gone: { target: Target; parked: Parked; outcome: Outcome }[] = [];
  /** The number of attempts in progress. */
  private running = 0;
  /** How often an attempt has ended that held up later deliveries of its emitter. */
  private freed = 0;
  /** The turns in the lanes that have not come yet. */
  private turns = 0;
  /** For the names of the lanes. */
  private requested = 0;
  private disabled = false;
  /** The longest pauses that receivers have requested, by URL, in ms. */
  private readonly retryAfterMs = new Map<string, number>();
  private failure: unknown;
  private checkProgress = () => {};
  /** The number of attempts that have begun. */
  attempted = 0;
  /** How many deliveries can be attempted before they have waited too long. */
  size = TAKEN;
  /** The receiver that fails: no further attempts are made. */
  private failing: Target | undefined;

  constructor(
    private readonly parts: Parts,
    private readonly backlog: LeasedBacklog,
  ) {
    const { settlements } = parts;
    this.batch = new SettlementBatch(
      parts.log,
      (ended) => settlements.settle(backlog.claim, ended),
      async (ended) => {
        this.dropBegun(ended.map(({ parked }) => parked));
        this.disabled = (await settlements.settled(ended)) || this.disabled;
      },
    );
  }

  /** Whether outcomes are missing or not stored yet. */
  get inProgress(): boolean {
    return this.begun.size > 0;
  }

  /** No further attempts are made before `end`: the receiver fails, or an outcome could not be stored. */
  get hasStopped(): boolean {
    return this.failing !== undefined || this.failure !== undefined || this.batch.hasFailed;
  }

  /** The deliveries that must not be taken, and the emitters whose later ones would wait here. */
  get except(): Except {
    const places = Array.from(this.begun.values(), ({ delivery }) => delivery.place);
    return { places, emitters: this.heldUp };
  }

  /** Whether no further attempt could begin. */
  private get isFull(): boolean {
    return this.running >= this.parts.concurrency;
  }

  private get heldUp(): EmitterId[] {
    const { leastMs, mostMs, factor } = HELD_UP;
    const since = performance.now() - Math.min(mostMs, Math.max(leastMs, factor * this.backlog.receiver.duration));
    return [...this.emitters].filter(([, begunAt]) => begunAt <= since).map(([emitterId]) => emitterId);
  }

  /** Whether all that wait are behind attempts that take long. */
  private get isHeldUp(): boolean {
    const emitters = new Set<string>(this.heldUp);
    return [...this.waiting.keys()].every((lane) => emitters.has(lane));
  }

  /** Resolves when each of the deliveries is in progress, or is left to the store again because it would have to wait for long. */
  async attempt(parked: Parked[]): Promise<void> {
    const before = this.attempted;
    const end = performance.now() + WAIT_MS;
    for (const [lane, deliveries] of Map.groupBy(parked, laneOf)) this.waiting.set(lane, deliveries);
    this.requestTurns();
    const isDone = () => this.waiting.size === 0 || this.isOver;
    const isTooLong = () => performance.now() >= end;
    while (!isDone() && !isTooLong() && !this.isHeldUp) await this.until(isDone, HELD_UP.leastMs);
    if (this.waiting.size > 0) this.size = Math.max(this.parts.concurrency, this.attempted - before);
    else this.size = Math.min(TAKEN, 2 * this.size);
    const isStuck = this.waiting.size > 0 && this.isFull;
    this.leaveWaiting();
    // none of those that were left could begin
    while (isStuck && this.isFull && !this.isOver) await this.until(() => !this.isFull, WAIT_MS);
    // if the store is slower than the receiver
    await this.until(() => this.begun.size <= TAKEN || this.isOver, WAIT_MS);
  }

  /**
   * Resolves when all attempts have ended and their outcomes are stored, or could not be. If some take long, it resolves earlier: when one that has held up others
   * ends, or when further deliveries can be taken.
   */
  async progress(): Promise<void> {
    const { freed } = this;
    let isTakeable = false;
    const endLooks = this.parts.looks.add({
      webhookId: this.backlog.claim.webhookId,
      except: () => this.except,
      looked: (found) => {
        isTakeable = found && !this.isFull;
        this.checkProgress();
      },
    });
    await this.until(() => this.running === 0 || this.freed > freed || isTakeable || this.isOver);
    endLooks();
    if (this.running === 0) await this.batch.flush();
  }

  /**
   * Resolves when all attempts have ended and their outcomes are stored. Rejects if some could not be stored. Returns whether the webhook is disabled, and the
   * receiver that fails, with the longest pause that it has requested.
   */
  async end(): Promise<{ disabled: boolean; failing?: Target; retryAfterMs: number | null }> {
    this.leaveWaiting();
    try {
      await this.until(() => this.running === 0);
      await this.batch.end();
      if (this.failure !== undefined) throw this.failure as Error;
      const gone = this.gone.splice(0);
      for (const { target, parked, outcome } of gone) {
        const stored = await this.parts.settlements.gone(target, parked, outcome);
        this.ended({ target, parked, settlement: settlementOf(parked, stored) });
      }
      await this.batch.end();
      const { failing } = this;
      const retryAfterMs = (failing && this.retryAfterMs.get(failing.url)) ?? null;
      const isGone = gone.some(({ target }) => target.url === failing?.url);
      return { disabled: this.disabled || isGone, failing, retryAfterMs };
    } finally {
      this.dropBegun([...this.begun.values()]);
      this.failing = undefined;
      this.disabled = false;
      this.retryAfterMs.clear();
    }
  }

  /** No further attempts are made. */
  get isOver(): boolean {
    return this.hasStopped || this.backlog.isOver();
  }

  /** Requests a turn for each delivery that may begin. Which one it is for is decided when it comes. */
  private requestTurns(): void {
    const { webhookId, ownerId } = this.backlog.claim;
    while (this.turns < this.startable()) {
      this.turns += 1;
      const lane = `${webhookId} ${(this.requested += 1)}`;
      this.parts.lanes.push({ lane, group: webhookId, tenant: ownerId, run: () => this.takeTurn() }, () => this.requestTurns());
    }
  }

  private startable(): number {
    if (this.isOver) return 0;
    let count = 0;
    for (const lane of this.waiting.keys()) {
      if (count === this.parts.concurrency) break;
      if (!this.isBusy(lane)) count += 1;
    }
    return count;
  }

  private isBusy(lane: string): boolean {
    return this.emitters.has(lane as EmitterId);
  }

  private next(): Parked | undefined {
    for (const [lane, deliveries] of this.waiting) {
      if (this.isBusy(lane)) continue;
      this.waiting.delete(lane);
      const parked = deliveries.shift();
      if (deliveries.length > 0) this.waiting.set(lane, deliveries);
      return parked;
    }
    return undefined;
  }

  private async takeTurn(): Promise<void> {
    // the owner may have changed, disabled or deleted it while the deliveries waited
    const target = await this.parts.targets.ofBacklog(this.backlog.claim.webhookId);
    this.turns -= 1;
    if (!target?.active) return this.leaveWaiting();
    // reading it may have taken long
    if (this.isOver) return;
    const parked = this.next();
    if (parked) await this.make(target, parked);
  }

  private async make(target: Target, parked: Parked): Promise<void> {
    const { delivery, fresh } = parked;
    const { receiver } = this.backlog;
    this.begun.set(eventIdOf(delivery.place), parked);
    if (fresh) this.emitters.set(delivery.emitterId, performance.now());
    this.attempted += 1;
    this.running += 1;
    receiver.begins(target.url);
    this.checkProgress();
    try {
      const outcome = await this.parts.attempts.make(target, delivery, stepOf(parked));
      receiver.addDuration(outcome.attempt.duration_ms);
      const opens = receiver.count(target.url, delivery, outcome, !fresh);
      if (opens) this.failing = target;
      // perhaps a former receiver, when the present one fails already
      else if (outcome.verdict === 'gone') this.failing ??= target;
      if (outcome.retryAfterMs !== null)
        this.retryAfterMs.set(target.url, Math.max(this.retryAfterMs.get(target.url) ?? 0, outcome.retryAfterMs));
      // that it is gone is stored at the end: the lane would repeat the attempt if the database failed here
      if (outcome.verdict === 'gone') this.gone.push({ target, parked, outcome });
      else this.ended({ target, parked, settlement: settlementOf(parked, outcome) });
    } catch (error) {
      this.failure = error;
    } finally {
      this.running -= 1;
      if (fresh) {
        if (this.heldUp.includes(delivery.emitterId)) this.freed += 1;
        this.emitters.delete(delivery.emitterId);
      }
      if (this.running === 0 && this.waiting.size === 0) void this.batch.flush();
      this.checkProgress();
    }
  }

  private ended(begun: Begun): void {
    this.parts.settlements.ended(begun);
    this.batch.add(begun);
  }

  private leaveWaiting(): void {
    const left = [...this.waiting.values()].flat();
    this.waiting.clear();
    this.backlog.dropped(left, false);
    this.checkProgress();
  }

  private dropBegun(parked: Parked[]): void {
    for (const { delivery } of parked) this.begun.delete(eventIdOf(delivery.place));
    this.backlog.dropped(parked, true);
    this.checkProgress();
  }

  /** Resolves when the condition is met, or after this time. It is checked when an attempt begins or ends, and when outcomes are stored. */
  private async until(isMet: () => boolean, ms?: number): Promise<void> {
    if (isMet()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    this.checkProgress = () => {
      if (isMet()) resolve();
    };
    await promise;
    clearTimeout(timer);
    this.checkProgress = () => {};
  }
}

const laneOf = ({ fresh, delivery }: Parked): string => (fresh ? delivery.emitterId : eventIdOf(delivery.place));
