import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { UserId } from '#contracts';
import type { Task } from '#messaging';
import { comparePlaces, type DeletedRange, eventIdOf, isInRange } from '#events';
import { counter, LOG, type Log } from '#observability';
import { RoutingConfig } from '../../routing.config.js';
import { Attempts, FIRST } from '../attempt/attempts.js';
import { DeliveredLog } from '../history/delivered-log.js';
import { type Delivery, detached, type Outcome } from '../delivery.js';
import { DeliveryStore } from '../store/delivery-store.js';
import { type ReceiverState, ReceiverStates, type Waiting } from '../receivers/receiver-states.js';
import { disableGone } from '../gone-receivers.js';
import { failureReportOf, Notices } from '../notices.js';
import { RunningClock } from '../attempt/running-clock.js';
import { longestSilence, probePause, RANDOM, type Random } from '../attempt/retry-schedule.js';
import { type Target, Targets } from '../receivers/targets.js';

const parkedUnattempted = counter(
  'deliveries_parked_total',
  'Deliveries that were parked without an attempt because their webhook is spilled or inactive.',
);

/**
 * An attempt that takes longer is parked while it is in flight, because the committed position, from which a crash continues, must not wait for it.
 * If all attempts take long, this machine may be slow, and parking them would only add load; but it may as well be many slow receivers.
 */
const SLOW_MS = { least: 1000, most: 3000 };
const SLOW_FACTOR = 10;
/**
 * A delivery that waits for longer is parked as well, for the same reason, if its queue will take this much longer: a shorter one will soon be over, and may have
 * waited for the database. Not under memory pressure, when the machine may be what is slow.
 */
const LATE = { waitedMs: SLOW_MS.most, queueMs: 1000 };
/** Before a stop, receivers are spilled if deliveries have waited for this long: the others wait for a moment only. */
const HANDED_OVER_MS = 200;
/** An attempt in flight belongs to this process for this long after its time limit. */
const IN_FLIGHT_MARGIN_MS = 5000;
/** While a webhook is closing. */
const CLOSING_LOOK_MS = 20;
/** The deliveries that are parked in one statement. */
const PARKED_AT_ONCE = { deliveries: 200, bytes: 4 * 1024 * 1024 };
/**
 * Under memory pressure, a webhook is spilled if its queue is this long and its attempts take this many times longer than the mean; or if, at its present pace,
 * the deliveries of its queue take this long, while other accounts have deliveries.
 */
const QUEUE = { waiting: 16, durationMs: 20, factor: 4, longMs: 5000 };
/** Before another attempt to park a delivery in flight that the database has refused. */
const NOT_PARKED_PAUSE_MS = 500;
/** While the database refuses the outcome of an attempt. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/** At most this many receivers whose attempts may be no slower than others are spilled in one tick, or before a stop. */
const SPILLED_AT_ONCE = 50;
const SPILLED_AGAIN_MS = 2000;

/** An attempt in progress. */
interface InFlight {
  receiver: ReceiverState;
  delivery: Delivery;
  since: number;
  /** Resolves to whether it has been parked in flight. */
  parking?: Promise<boolean>;
  /** If it has been parked in flight. */
  revision?: string;
  /** Releases its lane. */
  done(): void;
  /** Resolves when its outcome is known and, if it was parked, stored. */
  ended: Promise<void>;
}

/** A first attempt that has ended. */
interface EndedAttempt {
  receiver: ReceiverState;
  target: Target;
  delivery: Delivery;
  outcome: Outcome;
  /** If it was parked in flight. */
  revision?: string;
  /** Its failure was one too many: the receiver is failing. */
  opens: boolean;
}

/**
 * First attempts, from memory. A lane's task ends when its delivery has an outcome or is parked:
 *
 *   direct ──► attempt ──► delivered
 *     │          │ └─────► failed ──► parked on its retry schedule; the receiver fails ──► spill
 *     │          └─ slow ─► parked in flight + spill; the attempt continues without its lane
 *     └─ waits for long ──► spill
 *   spilled ─► parked unattempted, with all waiting deliveries to the webhook; the Drainer takes over
 *   closing ─► waits until it is one of the two
 *   inactive ─► like spilled: its event came while the webhook was active
 */
@Injectable()
export class Dispatcher implements OnApplicationShutdown {
  private readonly inFlight = new Set<InFlight>();
  /** Attempts that have left their lanes, or will if the database accepts them. */
  private readonly slow = new Set<Promise<void>>();
  private readonly stopTicking: () => void;
  /** Whether the memory for deliveries becomes scarce. */
  private pressed: () => boolean = () => false;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly store: DeliveryStore,
    private readonly targets: Targets,
    private readonly receivers: ReceiverStates,
    private readonly attempts: Attempts,
    private readonly delivered: DeliveredLog,
    private readonly notices: Notices,
    @Inject(RANDOM) private readonly random: Random,
    private readonly clock: RunningClock,
  ) {
    this.stopTicking = clock.onTick(() => this.tick());
  }

  // not earlier: until the lanes are empty, slow attempts must be parked
  onApplicationShutdown(): void {
    this.stopTicking();
  }

  /** Resolves when no attempt is in progress, including slow ones that have left their lanes. */
  async idle(): Promise<void> {
    await Promise.all([...this.slow, ...Array.from(this.inFlight, ({ ended }) => ended)]);
  }

  /** `pressed` returns whether the memory for deliveries becomes scarce. */
  watchPressure(pressed: () => boolean): void {
    this.pressed = pressed;
  }

  /** The first attempt, in order per webhook and emitter. `version`: the webhook's version as it was just read. */
  firstAttempt(delivery: Delivery, version: number, ownerId: UserId): Task {
    this.targets.see(delivery.webhookId, version);
    const receiver = this.receivers.see(delivery.webhookId, ownerId);
    // it waits behind others, perhaps for long
    if (receiver.waiting.size > 0) delivery.json = detached(delivery.json);
    const waiting: Waiting = { delivery, since: this.clock.now(), isOwn: () => task.isOwn?.() ?? true, ended: false };
    receiver.waiting.add(waiting);
    const task: Task = {
      lane: `${delivery.webhookId} ${delivery.emitterId}`,
      group: delivery.webhookId,
      tenant: ownerId,
      run: () => this.run(receiver, waiting),
      drop: () => void receiver.waiting.delete(waiting),
      isSettled: () => waiting.ended,
    };
    return task;
  }

  /**
   * Parks the deliveries that wait for slow receivers, because other processes get their partitions: they would hold back the positions of these, and later
   * deliveries that have been made would be repeated.
   */
  async handOver(): Promise<void> {
    const late = this.clock.now() - HANDED_OVER_MS;
    const isLate = ({ waiting: [oldest] }: ReceiverState) => oldest !== undefined && oldest.since <= late && oldest.isOwn();
    const receivers = [...this.receivers].filter(isLate).slice(0, SPILLED_AT_ONCE);
    await Promise.all(receivers.map((receiver) => this.parkAll(receiver, 'slow').catch(this.reportNotSpilled(receiver))));
  }

  private reportNotSpilled({ webhookId }: ReceiverState): (error: Error) => void {
    return (error) => this.log.warn({ webhook_id: webhookId, err: error }, 'webhook.not-spilled');
  }

  /** Ends the deliveries of deleted events that wait for their attempts. Returns how many there were. */
  withdraw(ranges: DeletedRange[]): number {
    const isDeleted = ({ emitterId, stream, place }: Delivery) =>
      ranges.some((range) => range.emitterId === emitterId && comparePlaces(place, range.place) < 0 && isInRange(range, stream, place));
    let count = 0;
    for (const { waiting, parking } of this.receivers) {
      // those that are being parked are withdrawn from the backlog, when their tasks have ended
      if (parking) continue;
      for (const each of waiting) {
        if (!isDeleted(each.delivery)) continue;
        each.ended = true;
        waiting.delete(each);
        count += 1;
      }
    }
    return count;
  }

  private async run(receiver: ReceiverState, waiting: Waiting): Promise<void> {
    if (waiting.rest) return waiting.rest();
    const target = await this.turn(receiver, waiting);
    if (!target) return;
    let ended: EndedAttempt | undefined;
    try {
      ended = await this.attempt(receiver, target, waiting.delivery);
    } catch (error) {
      // until the lane tries again, it may be parked with the others
      receiver.waiting.add(waiting);
      throw error;
    }
    if (!ended) return;
    waiting.rest = () => this.settle(ended);
    await waiting.rest();
  }

  /** The target, when the attempt may begin; undefined if there is nothing left to attempt. */
  private async turn(receiver: ReceiverState, waiting: Waiting): Promise<Target | undefined> {
    while (!waiting.ended) {
      const known = this.targets.get(receiver.webhookId);
      const target = known instanceof Promise ? await known : known;
      if (waiting.ended) break;
      if (!target || (target.active && target.mode === 'direct')) {
        receiver.waiting.delete(waiting);
        return target;
      }
      if (target.mode === 'closing') await new Promise((resolve) => setTimeout(resolve, CLOSING_LOOK_MS));
      else await this.park(receiver, target.mode === 'direct' ? 'inactive' : undefined);
    }
    return undefined;
  }

  /** Parks waiting deliveries. A webhook that is direct is spilled before, for the given reason: later deliveries must not overtake them. */
  private park(receiver: ReceiverState, spilledBecause?: 'slow' | 'inactive'): Promise<void> {
    const parking = async () => {
      if (spilledBecause) await this.spill(receiver, spilledBecause);
      await this.parkWaiting(receiver);
    };
    return (receiver.parking ??= parking().finally(() => (receiver.parking = undefined)));
  }

  /** Parks all waiting deliveries of this process. */
  private async parkAll(receiver: ReceiverState, reason: 'slow' | 'inactive'): Promise<void> {
    // one in progress may not spill the webhook, which the Drainer may have made direct again
    while (receiver.parking) await receiver.parking.catch(() => {});
    let spilledBecause: typeof reason | undefined = reason;
    for (let before = Infinity; receiver.waiting.size > 0 && receiver.waiting.size < before; spilledBecause = undefined) {
      before = receiver.waiting.size;
      await this.park(receiver, spilledBecause);
    }
  }

  /**
   * Parks the waiting deliveries to a spilled webhook, of all lanes, as many as fit into one statement. Not those that another process may have
   * delivered: they would be delivered again. The attempts in flight are parked before: the Drainer must not begin later ones of their emitters until
   * they have ended.
   */
  private async parkWaiting(receiver: ReceiverState): Promise<void> {
    const before = [...this.inFlight].filter((attempt) => attempt.receiver === receiver);
    const parked = await Promise.all(before.map((attempt) => (attempt.parking ??= this.parkInFlight(attempt))));
    // then the lanes look again
    if (parked.includes(false)) return this.targets.outdate(receiver.webhookId);
    const chunk: Waiting[] = [];
    let bytes = 0;
    for (const waiting of receiver.waiting) {
      if (!waiting.isOwn()) continue;
      bytes += waiting.delivery.json.length;
      if (chunk.length > 0 && (bytes > PARKED_AT_ONCE.bytes || chunk.length === PARKED_AT_ONCE.deliveries)) break;
      chunk.push(waiting);
    }
    const mode = await this.store.parkFresh(
      receiver.webhookId,
      chunk.map(({ delivery }) => delivery),
    );
    if (mode === 'spilled' || mode === 'gone') {
      for (const waiting of chunk) {
        waiting.ended = true;
        receiver.waiting.delete(waiting);
      }
      if (mode === 'spilled') parkedUnattempted.inc(chunk.length);
    } else {
      this.targets.outdate(receiver.webhookId);
    }
  }

  /** Undefined if the attempt takes long: then it is parked, and its outcome is stored by settleParked. */
  private attempt(receiver: ReceiverState, target: Target, delivery: Delivery): Promise<EndedAttempt | undefined> {
    return new Promise((resolve, reject) => {
      const begin = async (): Promise<void> => {
        try {
          const outcome = await this.attempts.make(target, delivery, FIRST).finally(() => {
            this.inFlight.delete(attempt);
            receiver.held -= 1;
          });
          receiver.addDuration(outcome.attempt.duration_ms);
          const isParked = attempt.parking && (await attempt.parking);
          const { revision } = attempt;
          const ended = { receiver, target, delivery, outcome, revision, opens: receiver.count(target.url, delivery, outcome, false) };
          if (isParked) await this.settleParked(ended);
          else resolve(ended);
        } catch (error) {
          if (!(await attempt.parking)) throw error;
          // the Drainer attempts it when its time in flight is over
          this.log.error({ webhook_id: delivery.webhookId, event_id: eventIdOf(delivery.place), err: error }, 'delivery.attempt-failed');
        }
      };
      receiver.held += 1;
      receiver.begins(target.url);
      const since = this.clock.now();
      const attempt: InFlight = { receiver, delivery, since, done: () => resolve(undefined), ended: begin().catch(reject) };
      this.inFlight.add(attempt);
    });
  }

  private async settle(ended: EndedAttempt): Promise<void> {
    const { delivery, outcome } = ended;
    if (outcome.verdict === 'delivered') return this.delivered.add(delivery, [outcome.attempt]);
    await this.settleFailed(ended, (failed, report) => this.store.parkFailed(failed, report));
  }

  /** The same for a delivery that was parked in flight. It has no lane that retries, so this method does. */
  private async settleParked(ended: EndedAttempt): Promise<void> {
    const { delivery, outcome } = ended;
    // before it leaves the backlog: otherwise, it would be in no list meanwhile
    if (outcome.verdict === 'delivered') this.delivered.add(delivery, [outcome.attempt]);
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        if (outcome.verdict === 'delivered') {
          await this.store.settle(delivery.webhookId, [{ delivery, delivered: true, attempts: [outcome.attempt] }]);
        } else {
          await this.settleFailed(ended, (failed, report) => this.store.settle(delivery.webhookId, [failed], { report }));
        }
        return;
      } catch (error) {
        if (pause === FIRST_PAUSE_MS)
          this.log.warn({ webhook_id: delivery.webhookId, event_id: eventIdOf(delivery.place), err: error }, 'delivery.not-settled');
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  private async settleFailed(ended: EndedAttempt, park: DeliveryStore['parkFailed']): Promise<void> {
    const { target, delivery, revision } = ended;
    const { attempt, tries, pauseMs } = await this.judge(ended);
    const failed = { delivery, delivered: false as const, attempts: [attempt], tries, pauseMs, revision };
    const givenUp = await park(failed, (failures) => failureReportOf(target, failures));
    if (givenUp.length > 0) this.notices.gaveUp(target, delivery);
  }

  /** Applies what a failure means for the receiver. Returns the outcome to store. */
  private async judge({ receiver, target, delivery, outcome, opens }: EndedAttempt): Promise<Outcome> {
    const { verdict } = outcome;
    if (verdict === 'gone') {
      // they are given up with those that are parked
      await this.parkAll(receiver, 'inactive');
      return disableGone({ store: this.store, targets: this.targets, notices: this.notices }, target, delivery, outcome);
    }
    if (verdict === 'failed') await this.store.markFailing(target, longestSilence(this.config.retrySchedule));
    if (opens) await this.openBreaker(receiver, target, outcome);
    return outcome;
  }

  private async openBreaker(receiver: ReceiverState, target: Target, { retryAfterMs }: Outcome): Promise<void> {
    const probeInMs = probePause(this.config.retrySchedule, { failedProbes: 0, retryAfterMs }, this.random());
    if (await this.store.openBreaker(target, probeInMs)) this.logSpilled(receiver, 'failing');
    this.targets.outdate(target.id);
  }

  private async spill(receiver: ReceiverState, reason: 'slow' | 'inactive'): Promise<void> {
    await this.store.spill(receiver.webhookId);
    this.targets.outdate(receiver.webhookId);
    this.logSpilled(receiver, reason);
  }

  private logSpilled({ webhookId, waiting }: ReceiverState, reason: 'failing' | 'slow' | 'inactive'): void {
    this.log.info({ webhook_id: webhookId, reason, waiting: waiting.size }, 'webhook.spilled');
  }

  /** Returns whether attempts are in progress. */
  private tick(): boolean {
    const slow = this.clock.now() - Math.min(Math.max(SLOW_MS.least, SLOW_FACTOR * this.receivers.duration), SLOW_MS.most);
    // in the order of their start
    for (const attempt of this.inFlight) {
      if (attempt.since > slow) break;
      attempt.parking ??= this.parkInFlight(attempt);
    }
    this.spillReceivers();
    this.receivers.deleteIdle();
    return this.inFlight.size > 0;
  }

  private spillReceivers(): void {
    const now = performance.now();
    const maySpill = ({ parking, spilledAt }: ReceiverState) => parking === undefined && now - spilledAt >= SPILLED_AGAIN_MS;
    for (const receiver of this.pressed() ? this.slowReceivers(maySpill) : this.lateReceivers(maySpill)) {
      receiver.spilledAt = now;
      // at once: the Drainer makes a webhook without a backlog direct again
      this.park(receiver, 'slow').catch(this.reportNotSpilled(receiver));
    }
  }

  private slowReceivers(maySpill: (receiver: ReceiverState) => boolean): Set<ReceiverState> {
    const slow = Math.max(QUEUE.durationMs, QUEUE.factor * this.receivers.duration);
    const receivers = [...this.receivers].filter(maySpill);
    const slowOnes = receivers.filter(({ waiting, duration }) => waiting.size >= QUEUE.waiting && duration >= slow);
    const longOnes = receivers.filter((receiver) => this.delaysOthers(receiver));
    const others = [...longOnes, ...this.receivers.ofGreedyAccount().filter(maySpill)].slice(0, SPILLED_AT_ONCE);
    return new Set([...slowOnes, ...others]);
  }

  private lateReceivers(maySpill: (receiver: ReceiverState) => boolean): ReceiverState[] {
    const late = this.clock.now() - LATE.waitedMs;
    const isLate = ({ waiting: [oldest], queueMs }: ReceiverState) =>
      queueMs >= LATE.queueMs && oldest !== undefined && oldest.since <= late && oldest.isOwn();
    return [...this.receivers].filter((receiver) => isLate(receiver) && maySpill(receiver)).slice(0, SPILLED_AT_ONCE);
  }

  private delaysOthers({ queueMs, duration, ownerId }: ReceiverState): boolean {
    return queueMs >= QUEUE.longMs && duration >= QUEUE.durationMs && ownerId !== undefined && this.receivers.hasOthersThan(ownerId);
  }

  /** Returns whether the delivery is parked; otherwise it keeps its lane, and may be parked again. */
  private async parkInFlight(attempt: InFlight): Promise<boolean> {
    const { receiver, delivery, ended } = attempt;
    const isFirstTry = !this.slow.has(ended);
    if (isFirstTry) {
      this.slow.add(ended);
      void ended.finally(() => this.slow.delete(ended));
    }
    try {
      attempt.revision = await this.store.parkInFlight(delivery, this.config.attemptTimeoutMs + IN_FLIGHT_MARGIN_MS);
    } catch (error) {
      if (isFirstTry) this.log.warn({ webhook_id: delivery.webhookId, err: error }, 'delivery.not-parked');
      await new Promise((resolve) => setTimeout(resolve, NOT_PARKED_PAUSE_MS));
      attempt.parking = undefined;
      return false;
    }
    this.log.info({ webhook_id: delivery.webhookId, event_id: eventIdOf(delivery.place) }, 'delivery.parked-in-flight');
    this.targets.outdate(receiver.webhookId);
    attempt.done();
    return true;
  }
}
