import { Inject, Injectable } from '@nestjs/common';
import type { UserId, WebhookId } from '#contracts';
import { eventIdOf } from '#events';
import { Lanes } from '#messaging';
import { LimitedWarnings, LOG, type Log } from '#observability';
import { accountShareOf, RoutingConfig } from '../../routing.config.js';
import { Attempts, type RetryStep } from '../attempt/attempts.js';
import { DeliveredLog } from '../history/delivered.repository.js';
import { type Delivery, keptAttempts, type Outcome } from '../delivery.js';
import { disableGone } from '../gone-receivers.js';
import { type Claim, DeliveryStore, type NextLook, type Parked, type Settlement } from '../store/delivery-store.js';
import { type ReceiverState, ReceiverStates } from '../receivers/receiver-states.js';
import { disabledReports, failureReportOf, Notices } from '../notices.js';
import { type FailedProbes, longestSilence, probePause, RANDOM, type Random, scheduleLength } from '../attempt/retry-schedule.js';
import { DeliveryMemory, type Reservation } from './delivery-memory.js';
import { Lease } from './lease.js';
import { SettlementBatch } from './settlement-batch.js';
import { type Target, Targets } from '../receivers/targets.js';
import { WebhookRates } from './webhook-rates.js';

/** The number of deliveries that are taken from a backlog at a time. */
const TAKEN = 200;
/** How long new deliveries may be held up so that the end of a backlog can be reached, and how fast a receiver must be for that. */
const CLOSING_MS = 1000;
const CLOSING_MAX_DURATION_MS = 50;
/** While an attempt is in flight elsewhere: its end wakes the backlog, and this pause is the fallback. */
const IN_FLIGHT_LOOK_MS = 1000;
const INACTIVE_LOOK_MS = 3_600_000;
const AFTER_TROUBLE_MS = 1000;
/** After this time, deliveries that were taken are looked up again before they are attempted. */
const FRESH_MS = 1000;
/** How long a backlog is drained while others wait. */
const TURN_MS = 5000;

/**
 * Delivers the backlog of one webhook at a time, as long as the lease holds:
 *
 *   breaker open ──► one probe ──► failed: the next one later
 *                        └───────► delivered: breaker closed ─┐
 *   breaker closed ◄──────────────────────────────────────────┘
 *        │
 *        ▼
 *   take ──► some ──► attempt them, fresh ones in order per emitter ──► take …
 *     │                 └─ the receiver fails ──► breaker open
 *     ├────► few left, and the receiver is fast ──► hold new deliveries up for a moment, take again
 *     └────► none ──► nothing was parked meanwhile: new deliveries are attempted directly again
 */
@Injectable()
export class Drainer {
  private readonly lanes: Lanes;
  private readonly rates = new WebhookRates();
  private readonly memory: DeliveryMemory;
  private stopping = false;

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
  ) {
    this.memory = new DeliveryMemory(config.maxEventBytes);
    const failures = new LimitedWarnings(log, 'drainer.task-failed', {}, 'error');
    // separate lanes: a new delivery never waits behind a backlog
    this.lanes = new Lanes({
      concurrency: config.concurrency,
      groupConcurrency: config.webhookConcurrency,
      tenantConcurrency: accountShareOf(config.concurrency),
      onFailure: (err, lane) => failures.warn({ lane, err }),
    });
  }

  /** Begins no further attempts. */
  stop(): void {
    this.stopping = true;
  }

  /**
   * Drains the backlog until nothing is due, or for a turn if `othersWait`. Never throws: another replica continues when the lease expires.
   */
  async drain(claimed: Claim, othersWait = () => false): Promise<void> {
    const begun = performance.now();
    const isTurnOver = () => performance.now() - begun >= TURN_MS && othersWait();
    const receiver = this.receivers.of(claimed.webhookId);
    receiver.held += 1;
    const lease = new Lease(this.store, claimed);
    let claim = claimed;
    try {
      for (let probed = false; ;) {
        const renewed = await lease.renew();
        if (!renewed) return;
        // before the webhook is read: what is decided from here on does not overwrite a later wake-up
        claim = { ...claimed, wakes: renewed.wakes };
        const target = await this.targets.load(claim.webhookId);
        if (!target) return;
        if (this.stopping) return await this.release(claim, { when: 'next due' });
        // behind those that wait
        if (isTurnOver()) return await this.release(claim, { when: 'later', inMs: 0 });
        if (target.givingUp) {
          const deliveries = await this.store.giveUp(claim.webhookId);
          if (deliveries === 0) return await this.release(claim, { when: 'next due' });
          this.log.warn({ webhook_id: claim.webhookId, owner_id: target.ownerId, deliveries }, 'deliveries.given-up');
          continue;
        }
        if (!target.active) return await this.release(claim, { when: 'later', inMs: INACTIVE_LOOK_MS });
        if (renewed.failedProbes !== null) {
          // another replica has opened the breaker: its first probe has a time
          if (probed) return await this.release(claim, { when: 'unchanged' });
          probed = true;
          if (!(await this.probe(lease, claim, receiver, target.ownerId, renewed.failedProbes))) return;
          continue;
        }
        probed = true;
        if (!(await this.drainSome(lease, claim, receiver, target, isTurnOver))) return;
      }
    } catch (error) {
      this.log.warn({ webhook_id: claim.webhookId, err: error }, 'backlog.interrupted');
      await this.release(claim, { when: 'later', inMs: AFTER_TROUBLE_MS }).catch(() => undefined);
    } finally {
      lease.end();
      receiver.held -= 1;
      this.receivers.deleteIfIdle(receiver);
    }
  }

  /** Returns whether to continue. */
  private async drainSome(
    lease: Lease,
    claim: Claim,
    receiver: ReceiverState,
    target: Target,
    isTurnOver: () => boolean,
  ): Promise<boolean> {
    const limit = target.rateLimit === null ? TAKEN : await this.rates.take(target.id, target.rateLimit, TAKEN);
    const memory = await this.memory.reserve(target.ownerId);
    try {
      return await this.drainTaken(lease, claim, receiver, target, { limit, memory, isTurnOver });
    } finally {
      memory.end();
    }
  }

  private async drainTaken(
    lease: Lease,
    claim: Claim,
    receiver: ReceiverState,
    target: Target,
    { limit, memory, isTurnOver }: { limit: number; memory: Reservation; isTurnOver: () => boolean },
  ): Promise<boolean> {
    const { webhookId } = claim;
    let { parked, inFlight } = await this.store.take(webhookId, limit, memory.bytes);
    // fewer may be due, or their bodies are large
    this.rates.giveBack(webhookId, limit - parked.length);
    if (inFlight) {
      await this.release(claim, { when: 'later', inMs: IN_FLIGHT_LOOK_MS });
      return false;
    }
    if (parked.length === 0) return (await this.store.finishClosing(claim, this.rates.msToRest(webhookId))) === 'more';
    const endInSight = parked.length < TAKEN && !memory.isScarce(parked) && target.rateLimit === null && target.mode === 'spilled';
    if (endInSight && receiver.duration < CLOSING_MAX_DURATION_MS) {
      await this.store.startClosing(claim, CLOSING_MS);
      this.targets.outdate(webhookId);
      // with the deliveries that were parked until now
      ({ parked, inFlight } = await this.store.take(webhookId, limit, memory.bytes));
      if (inFlight) return true;
    }
    memory.keep(parked);
    const { opened, disabled, retryAfterMs } = await this.attemptAll(lease, claim, receiver, target, parked, isTurnOver);
    // the owner of the backlog opens the breaker
    if (!opened || disabled || !(await lease.renew())) return true;
    await this.store.spill(webhookId, { probeInMs: 0 });
    await this.release(claim, this.nextProbe({ failedProbes: 0, retryAfterMs }));
    this.targets.outdate(webhookId);
    this.log.info({ webhook_id: webhookId, reason: 'failing' }, 'webhook.spilled');
    return false;
  }

  /**
   * Attempts the deliveries, fresh ones in order per emitter, while the lease holds and until the turn is over, but at least one. Returns whether the
   * receiver fails: then the rest is not attempted. `disabled`: so is its webhook. `retryAfterMs`: the longest pause that it requested.
   */
  private async attemptAll(
    lease: Lease,
    claim: Claim,
    receiver: ReceiverState,
    target: Target,
    parked: Parked[],
    isTurnOver: () => boolean,
  ): Promise<{ opened: boolean; disabled: boolean; retryAfterMs: number | null }> {
    const { webhookId } = claim;
    let [opened, disabled] = [false, false];
    // each with the webhook as it was attempted
    const gone: { target: Target; each: Parked; outcome: Outcome }[] = [];
    const batch = new SettlementBatch(
      this.log,
      (settlements) => this.settle(claim, target, settlements),
      async (settlements) => {
        disabled = (await this.settled(target, settlements)) || disabled;
      },
    );
    let begun = 0;
    let retryAfterMs: number | null = null;
    const isWaiting = this.waitingOf(webhookId, parked);
    const isOver = () => opened || this.stopping || !lease.holds || (begun > 0 && isTurnOver());
    const run = async (each: Parked) => {
      if (isOver()) return;
      // the owner may have changed, disabled or deleted it while this delivery waited for its turn
      const current = await this.targets.ofBacklog(webhookId);
      // reading it may have taken long
      if (!current?.active || !(await isWaiting(each)) || isOver()) return;
      begun += 1;
      const outcome = await this.attempts.make(current, each.delivery, stepOf(each));
      receiver.addDuration(outcome.attempt.duration_ms);
      const opens = receiver.count(each.delivery, outcome, !each.fresh);
      opened ||= opens || outcome.verdict === 'gone';
      if (outcome.retryAfterMs !== null) retryAfterMs = Math.max(retryAfterMs ?? 0, outcome.retryAfterMs);
      // nothing here may throw: the lane would make the attempt again
      if (outcome.verdict === 'gone') gone.push({ target: current, each, outcome });
      else batch.add(settlementOf(each, outcome));
    };
    const ended = parked.map(
      (each) =>
        new Promise<void>((resolve) => {
          const { emitterId, place } = each.delivery;
          const lane = each.fresh ? `${webhookId} ${emitterId}` : `${webhookId} retry ${eventIdOf(place)}`;
          this.lanes.push({ lane, group: webhookId, tenant: target.ownerId, run: () => run(each) }, resolve);
        }),
    );
    await Promise.all(ended);
    await batch.end();
    for (const { target: attempted, each, outcome } of gone)
      batch.add(settlementOf(each, await this.gone(attempted, each.delivery, outcome)));
    await batch.end();
    this.rates.giveBack(webhookId, parked.length - begun);
    return { opened, disabled: disabled || gone.length > 0, retryAfterMs };
  }

  /**
   * Returns whether one of the deliveries, which were just taken, still waits. The event of one that waits for its turn may be deleted, also through
   * another replica.
   */
  private waitingOf(webhookId: WebhookId, taken: Parked[]): (each: Parked) => Promise<boolean> {
    let readAt = performance.now();
    // until the first look, all of them
    let waiting: Promise<Set<string>> | undefined;
    const look = async () => {
      const places = taken.map(({ delivery }) => delivery.place);
      return new Set((await this.store.findWaiting(webhookId, places)).map(eventIdOf));
    };
    return async ({ delivery }) => {
      if (performance.now() - readAt >= FRESH_MS) {
        readAt = performance.now();
        waiting = look();
      }
      return waiting === undefined || (await waiting).has(eventIdOf(delivery.place));
    };
  }

  /** Attempts one delivery to a failing receiver. Returns whether to continue: it has recovered, or its webhook is disabled. */
  private async probe(lease: Lease, claim: Claim, receiver: ReceiverState, ownerId: UserId, failedProbes: number): Promise<boolean> {
    const memory = await this.memory.reserve(ownerId);
    try {
      return await this.probeOnce(lease, claim, receiver, memory, failedProbes);
    } finally {
      memory.end();
    }
  }

  private async probeOnce(
    lease: Lease,
    claim: Claim,
    receiver: ReceiverState,
    memory: Reservation,
    failedProbes: number,
  ): Promise<boolean> {
    const { webhookId } = claim;
    const parked = await this.store.takeProbe(webhookId, failedProbes);
    if (!parked) {
      await this.store.closeBreaker(claim);
      return true;
    }
    memory.keep([parked]);
    // its owner may have changed, disabled or deleted it while this probe waited for memory
    const target = await this.targets.ofBacklog(webhookId);
    if (!target?.active || !lease.holds) return true;
    const outcome = await this.attempts.make(target, parked.delivery, stepOfProbe(parked, this.config.retrySchedule));
    receiver.addDuration(outcome.attempt.duration_ms);
    receiver.count(parked.delivery, outcome, !parked.fresh);
    const stored = outcome.verdict === 'gone' ? await this.gone(target, parked.delivery, outcome) : outcome;
    const settlements = [settlementOfProbe(parked, stored)];
    await this.settle(claim, target, settlements);
    const disabled = await this.settled(target, settlements);
    if (disabled || outcome.verdict === 'gone') return true;
    if (outcome.verdict === 'delivered') {
      await this.store.closeBreaker(claim);
      this.log.info({ webhook_id: webhookId, failed_probes: failedProbes }, 'webhook.recovered');
      return true;
    }
    await this.release(claim, this.nextProbe({ failedProbes: failedProbes + 1, retryAfterMs: outcome.retryAfterMs }));
    return false;
  }

  private settle({ webhookId, leaseId }: Claim, target: Target, settlements: Settlement[]): Promise<void> {
    return this.store.settle(webhookId, settlements, { leaseId, report: failureReportOf(target, settlements) });
  }

  /** These outcomes are stored. Returns whether the webhook was disabled, because its receiver has been failing for too long. */
  private async settled(target: Target, settlements: Settlement[]): Promise<boolean> {
    for (const settlement of settlements) {
      if (settlement.delivered) this.delivered.add(settlement.delivery, settlement.attempts);
      else if (settlement.pauseMs === null) this.notices.gaveUp(target, settlement.delivery);
    }
    const failed = settlements.findLast(({ delivered }) => !delivered);
    if (!failed) return false;
    await this.store.markFailing(target, longestSilence(this.config.retrySchedule));
    const reports = disabledReports(target, 'failing', failed.delivery);
    if (!(await this.store.disable(target, reports, this.config.disableAfterMs))) return false;
    this.targets.outdate(target.id);
    this.notices.disabled(target, 'failing');
    return true;
  }

  private gone(target: Target, delivery: Delivery, outcome: Outcome): Promise<Outcome> {
    return disableGone({ store: this.store, targets: this.targets, notices: this.notices }, target, delivery, outcome);
  }

  private release(claim: Claim, next: NextLook): Promise<void> {
    return this.store.release(claim, next, this.rates.msToRest(claim.webhookId));
  }

  private nextProbe(failed: FailedProbes): { when: 'probe'; inMs: number; failedProbes: number } {
    const { failedProbes } = failed;
    return { when: 'probe', inMs: probePause(this.config.retrySchedule, failed, this.random()), failedProbes };
  }
}

const stepOf = ({ tries, sinceFirstMs }: Parked): RetryStep => ({ tries: tries + 1, sinceFirstMs });

/**
 * A probe that fails says nothing about its event: the delivery keeps its place in the retry schedule, and does not wait for long when the receiver has
 * recovered. The schedule ends when its time has passed.
 */
const stepOfProbe = ({ tries, sinceFirstMs }: Parked, schedule: readonly number[]): RetryStep => ({
  tries: sinceFirstMs > scheduleLength(schedule) ? schedule.length + 1 : Math.max(1, tries),
  sinceFirstMs,
});

function settlementOfProbe(parked: Parked, outcome: Outcome): Settlement {
  const settlement = settlementOf(parked, outcome);
  if (settlement.delivered || outcome.verdict === 'gone') return settlement;
  const dueInMs = parked.dueInMs - outcome.attempt.duration_ms;
  const pauseMs = dueInMs > 0 ? Math.max(dueInMs, outcome.retryAfterMs ?? 0) : settlement.pauseMs;
  return { ...settlement, tries: Math.max(1, parked.tries), pauseMs };
}

function settlementOf(parked: Parked, outcome: Outcome): Settlement {
  const { delivery } = parked;
  const { verdict, attempt, tries, pauseMs } = outcome;
  const attempts = keptAttempts([...parked.attempts, attempt]);
  if (verdict === 'delivered') return { delivery, delivered: true, attempts };
  const leftMs = parked.dueInMs - attempt.duration_ms;
  if (verdict === 'gone' || leftMs <= 0) return { delivery, delivered: false, attempts, tries, pauseMs };
  // a user requested it before its time: the schedule stays as it is, unless the receiver requests another pause
  const laterMs = Math.max(Math.min(pauseMs ?? leftMs, leftMs), outcome.retryAfterMs ?? 0);
  return { delivery, delivered: false, attempts, tries: Math.max(1, parked.tries), pauseMs: laterMs };
}
