import { Inject, Injectable } from '@nestjs/common';
import { eventIdOf } from '#events';
import { Lanes } from '#messaging';
import { LOG, type Log } from '#observability';
import { RoutingConfig } from '../../routing.config.js';
import { Attempts } from '../attempt/attempts.js';
import { DeliveredLog } from '../history/delivered.repository.js';
import type { Attempt, Outcome } from '../delivery.js';
import { type Claim, DeliveryStore, type Parked, type Settlement } from '../store/delivery-store.js';
import { type ReceiverState, ReceiverStates } from '../receivers/receiver-states.js';
import { Alerts } from '../alerts/alerts.js';
import { probePause, RANDOM, type Random } from '../attempt/retry-schedule.js';
import { SettlementBatch } from './settlement-batch.js';
import { type Target, Targets } from '../receivers/targets.js';
import { TokenBucket } from './token-bucket.js';

export const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** The number of deliveries that are taken from a backlog at a time. */
const TAKEN = 200;
/** The number of attempts that are stored per delivery. */
const KEPT_ATTEMPTS = 20;
/** How long new deliveries may be held up so that the end of a backlog can be reached, and how fast a receiver must be for that. */
const CLOSING_MS = 1000;
const CLOSING_MAX_DURATION_MS = 50;
/** While an attempt is in flight elsewhere: its end wakes the backlog, and this pause is the fallback. */
const IN_FLIGHT_LOOK_MS = 1000;
const INACTIVE_LOOK_MS = 3_600_000;
const AFTER_TROUBLE_MS = 1000;

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
  private readonly buckets = new Map<string, { rate: number; bucket: TokenBucket }>();
  private stopping = false;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly store: DeliveryStore,
    private readonly targets: Targets,
    private readonly receivers: ReceiverStates,
    private readonly attempts: Attempts,
    private readonly delivered: DeliveredLog,
    private readonly alerts: Alerts,
    @Inject(RANDOM) private readonly random: Random,
  ) {
    // separate lanes: a new delivery never waits behind a backlog
    this.lanes = new Lanes({
      concurrency: config.concurrency,
      groupConcurrency: config.webhookConcurrency,
      onFailure: (error, lane) => log.error({ lane, err: error }, 'drainer.task-failed'),
    });
  }

  /** Begins no further attempts. */
  stop(): void {
    this.stopping = true;
  }

  /** Drains the backlog until nothing is due. Never throws: another replica continues when the lease expires. */
  async drain(claim: Claim): Promise<void> {
    const receiver = this.receivers.of(claim.webhookId);
    receiver.held += 1;
    const renewing = setInterval(() => void this.store.renew(claim, LEASE_MS).catch(() => undefined), RENEW_MS);
    try {
      for (let probed = false; ;) {
        const lease = await this.store.renew(claim, LEASE_MS);
        const target = lease && (await this.targets.load(claim.webhookId));
        if (!lease || !target) return;
        if (this.stopping) return await this.store.release(claim, { when: 'next due' });
        if (!target.active) return await this.store.release(claim, { when: 'later', inMs: INACTIVE_LOOK_MS });
        if (lease.failedProbes !== null) {
          // another replica has opened the breaker: its first probe has a time
          if (probed) return await this.store.release(claim, this.nextProbe(lease.failedProbes));
          probed = true;
          if (!(await this.probe(claim, receiver, target, lease.failedProbes))) return;
          continue;
        }
        probed = true;
        if (!(await this.drainSome(claim, receiver, target))) return;
      }
    } catch (error) {
      this.log.warn({ webhook_id: claim.webhookId, err: error }, 'backlog.interrupted');
      await this.store.release(claim, { when: 'later', inMs: AFTER_TROUBLE_MS }).catch(() => undefined);
    } finally {
      clearInterval(renewing);
      receiver.held -= 1;
    }
  }

  /** Returns whether to continue. */
  private async drainSome(claim: Claim, receiver: ReceiverState, target: Target): Promise<boolean> {
    const { webhookId } = claim;
    const limit = target.rateLimit === null ? TAKEN : await this.tokens(webhookId, target.rateLimit);
    let { parked, inFlight } = await this.store.take(webhookId, limit);
    if (inFlight) {
      await this.store.release(claim, { when: 'later', inMs: IN_FLIGHT_LOOK_MS });
      return false;
    }
    if (parked.length === 0) {
      this.giveBack(webhookId, limit);
      return (await this.store.finishClosing(claim)) === 'more';
    }
    const endInSight = parked.length < TAKEN && target.rateLimit === null && target.mode === 'spilled';
    if (endInSight && receiver.duration < CLOSING_MAX_DURATION_MS) {
      await this.store.startClosing(claim, CLOSING_MS);
      this.targets.outdate(webhookId);
      // with the deliveries that were parked until now
      ({ parked, inFlight } = await this.store.take(webhookId, limit));
      if (inFlight) return true;
    }
    const opened = await this.attemptAll(receiver, target, parked);
    if (!opened) return true;
    await this.store.spill(webhookId, { probeInMs: 0 });
    await this.store.release(claim, this.nextProbe(0));
    this.targets.outdate(webhookId);
    this.log.info({ webhook_id: webhookId, reason: 'failing' }, 'webhook.spilled');
    return false;
  }

  /** Attempts the deliveries, fresh ones in order per emitter. Returns whether the receiver fails: then the rest is not attempted. */
  private async attemptAll(receiver: ReceiverState, target: Target, parked: Parked[]): Promise<boolean> {
    const { webhookId } = receiver;
    const batch = new SettlementBatch((settlements) => this.settle(receiver, target, settlements));
    let [opened, gone, begins] = [false, false, false];
    let begun = 0;
    const run = async (each: Parked) => {
      if (opened || this.stopping) return;
      begun += 1;
      const outcome = await this.attempts.make(target, each.delivery, each.tries + 1);
      receiver.addDuration(outcome.attempt.duration_ms);
      const failures = receiver.count(each.delivery, outcome, !each.fresh);
      opened ||= failures.opens || outcome.verdict === 'gone';
      gone ||= outcome.verdict === 'gone';
      begins ||= failures.begins;
      // nothing here may throw: the lane would make the attempt again
      batch.add(settlementOf(each, outcome));
    };
    const ended = parked.map(
      (each) =>
        new Promise<void>((resolve) => {
          const { emitterId, place } = each.delivery;
          const lane = each.fresh ? `${webhookId} ${emitterId}` : `${webhookId} retry ${eventIdOf(place)}`;
          this.lanes.push({ lane, group: webhookId, run: () => run(each) }, resolve);
        }),
    );
    await Promise.all(ended);
    await batch.end();
    if (begins) await this.store.markFailing(webhookId);
    if (gone) await this.gone(target);
    this.giveBack(webhookId, parked.length - begun);
    return opened;
  }

  /** Attempts one delivery to a failing receiver. Returns whether it has recovered. */
  private async probe(claim: Claim, receiver: ReceiverState, target: Target, failedProbes: number): Promise<boolean> {
    const { webhookId } = claim;
    const parked = await this.store.takeProbe(webhookId);
    if (!parked) {
      await this.store.closeBreaker(claim);
      return true;
    }
    const outcome = await this.attempts.make(target, parked.delivery, parked.tries + 1);
    receiver.addDuration(outcome.attempt.duration_ms);
    if (receiver.count(parked.delivery, outcome, !parked.fresh).begins) await this.store.markFailing(webhookId);
    if (outcome.verdict === 'gone') await this.gone(target);
    await this.settle(receiver, target, [settlementOf(parked, outcome)]);
    if (outcome.verdict === 'delivered') {
      await this.store.closeBreaker(claim);
      this.log.info({ webhook_id: webhookId, failed_probes: failedProbes }, 'webhook.recovered');
      return true;
    }
    await this.store.release(claim, this.nextProbe(failedProbes + 1));
    return false;
  }

  private async settle(receiver: ReceiverState, target: Target, settlements: Settlement[]): Promise<void> {
    const { webhookId } = receiver;
    await this.store.settle(webhookId, settlements);
    for (const settlement of settlements) {
      if (settlement.delivered) this.delivered.add(settlement.delivery, settlement.attempts);
      else if (settlement.pauseMs === null) await this.alerts.gaveUp(target, settlement.delivery, settlement.attempts.at(-1));
    }
    if (settlements.every(({ delivered }) => delivered)) return;
    if (await this.store.disable(webhookId, this.config.switchOffAfterMs)) {
      this.targets.outdate(webhookId);
      await this.alerts.disabled(target, 'failing');
    }
  }

  private async gone(target: Target): Promise<void> {
    if (await this.store.disable(target.id)) await this.alerts.disabled(target, 'gone');
    this.targets.outdate(target.id);
  }

  private nextProbe(failedProbes: number): { when: 'probe'; inMs: number; failedProbes: number } {
    return { when: 'probe', inMs: probePause(this.config.retrySchedule, failedProbes, this.random()), failedProbes };
  }

  /** The number of deliveries that the webhook's rate allows now. Waits until it is at least one. */
  private async tokens(webhookId: string, rate: number): Promise<number> {
    let kept = this.buckets.get(webhookId);
    if (kept?.rate !== rate) this.buckets.set(webhookId, (kept = { rate, bucket: new TokenBucket(rate, Date.now()) }));
    for (;;) {
      const tokens = kept.bucket.take(TAKEN, Date.now());
      if (tokens > 0) return tokens;
      await new Promise((resolve) => setTimeout(resolve, kept.bucket.waitMs));
    }
  }

  private giveBack(webhookId: string, tokens: number): void {
    this.buckets.get(webhookId)?.bucket.giveBack(tokens);
  }
}

function settlementOf({ delivery, attempts, tries }: Parked, { verdict, attempt, pauseMs }: Outcome): Settlement {
  const newest: Attempt[] = [...attempts, attempt].slice(-KEPT_ATTEMPTS);
  if (verdict === 'delivered') return { delivery, delivered: true, attempts: newest };
  return { delivery, delivered: false, attempts: newest, tries: tries + 1, pauseMs };
}
