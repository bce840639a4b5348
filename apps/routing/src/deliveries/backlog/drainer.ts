import { Inject, Injectable } from '@nestjs/common';
import { Lanes } from '#messaging';
import { LimitedWarnings, LOG, type Log } from '#observability';
import { limitsOfLanes, RoutingConfig } from '../../routing.config.js';
import { Attempts } from '../attempt/attempts.js';
import { DeliveredLog } from '../history/delivered-log.js';
import { type Claim, DeliveryStore, type NextLook, type Parked, type Taken } from '../store/delivery-store.js';
import { type ReceiverState, ReceiverStates } from '../receivers/receiver-states.js';
import { Notices } from '../notices.js';
import { type FailedProbes, probePause, RANDOM, type Random } from '../attempt/retry-schedule.js';
import { BacklogAttempts, type Parts } from './backlog-attempts.js';
import { BacklogLooks } from './backlog-looks.js';
import { DeliveryMemory, type Reservation } from './delivery-memory.js';
import { Lease } from './lease.js';
import { Settlements, settlementOfProbe, stepOfProbe } from './settlements.js';
import { type Target, Targets } from '../receivers/targets.js';
import { WebhookRates } from './webhook-rates.js';

/** How long new deliveries may be held up so that the end of a backlog can be reached, and how fast a receiver must be for that. */
const CLOSING_MS = 1000;
const CLOSING_MAX_DURATION_MS = 50;
/** While an attempt is in flight elsewhere. Its end wakes the backlog, unless the breaker is open. */
const IN_FLIGHT_LOOK_MS = 1000;
const INACTIVE_LOOK_MS = 3_600_000;
const AFTER_TROUBLE_MS = 1000;
/** How long a backlog is drained while others wait. */
const TURN_MS = 5000;

/** A backlog that is being drained. */
interface Drain {
  lease: Lease;
  claim: Claim;
  receiver: ReceiverState;
  attempts: BacklogAttempts;
}

/**
 * Delivers the backlog of one webhook at a time, as long as the lease holds:
 *
 *   breaker open ──► one probe ──► failed: the next one later
 *                        └───────► delivered: breaker closed ─┐
 *   breaker closed ◄──────────────────────────────────────────┘
 *        │
 *        ▼
 *   take ──► some ──► attempt them, fresh ones in order per emitter ──► the last ones have begun, or some are slow ──► take …
 *     │                 └─ the receiver fails ──► breaker open
 *     ├────► few left, and the receiver is fast ──► hold new deliveries up for a moment, take again
 *     └────► none ──► no attempt in progress, nothing was parked meanwhile: new deliveries are attempted directly again
 */
@Injectable()
export class Drainer {
  private readonly parts: Parts;
  private readonly rates = new WebhookRates();
  private readonly memory: DeliveryMemory;
  private readonly settlements: Settlements;
  private stopping = false;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly store: DeliveryStore,
    private readonly targets: Targets,
    private readonly receivers: ReceiverStates,
    private readonly attempts: Attempts,
    delivered: DeliveredLog,
    notices: Notices,
    @Inject(RANDOM) private readonly random: Random,
  ) {
    this.memory = new DeliveryMemory(config.maxEventBytes);
    this.settlements = new Settlements(config, store, targets, delivered, notices);
    const failures = new LimitedWarnings(log, 'drainer.task-failed', {}, 'error');
    // separate lanes: a new delivery never waits behind a backlog
    const lanes = new Lanes({
      ...limitsOfLanes(config.concurrency),
      groupConcurrency: config.webhookConcurrency,
      onFailure: (err, lane) => failures.warn({ lane, err }),
    });
    const looks = new BacklogLooks(store);
    this.parts = { log, lanes, concurrency: config.webhookConcurrency, looks, targets, attempts, settlements: this.settlements };
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
    const attempts: BacklogAttempts = new BacklogAttempts(this.parts, {
      claim: claimed,
      receiver,
      // at least one in each turn
      isOver: () => this.stopping || !lease.holds || (attempts.attempted > 0 && isTurnOver()),
      dropped: (parked, attempted) => {
        this.memory.free(claimed.ownerId, parked);
        if (!attempted) this.rates.giveBack(claimed.webhookId, parked.length);
      },
    });
    let claim = claimed;
    try {
      for (let probed = false; ;) {
        const renewed = await lease.renew();
        if (!renewed) return;
        // before the webhook is read: what is decided from here on does not overwrite a later wake-up
        claim = { ...claimed, wakes: renewed.wakes };
        const target = await this.targets.load(claim.webhookId);
        if (!target) return;
        const drain: Drain = { lease, claim, receiver, attempts };
        const { failedProbes } = renewed;
        const turnIsOver = isTurnOver();
        if (target.active && !target.givingUp && failedProbes === null && !this.stopping && !turnIsOver) {
          probed = true;
          if (!(await this.drainSome(drain, target))) return;
          continue;
        }
        await attempts.end();
        if (this.stopping) return await this.release(claim, { when: 'next due' });
        // behind those that wait
        if (turnIsOver) return await this.release(claim, { when: 'later', inMs: 0 });
        if (target.givingUp) {
          const deliveries = await this.store.giveUp(claim.webhookId);
          if (deliveries === 0) return await this.release(claim, { when: 'next due' });
          this.log.warn({ webhook_id: claim.webhookId, account_id: target.ownerId, deliveries }, 'deliveries.given-up');
          continue;
        }
        if (!target.active) return await this.release(claim, { when: 'later', inMs: INACTIVE_LOOK_MS });
        // another replica has opened the breaker: its first probe has a time
        if (probed || failedProbes === null) return await this.release(claim, { when: 'unchanged' });
        probed = true;
        if (!(await this.probe(drain, failedProbes))) return;
      }
    } catch (error) {
      this.log.warn({ webhook_id: claim.webhookId, err: error }, 'backlog.interrupted');
      await attempts.end().catch(() => undefined);
      await this.release(claim, { when: 'later', inMs: AFTER_TROUBLE_MS }).catch(() => undefined);
    } finally {
      await attempts.end().catch(() => undefined);
      lease.end();
      receiver.held -= 1;
      this.receivers.deleteIfIdle(receiver);
    }
  }

  /** Returns whether to continue. */
  private async drainSome(drain: Drain, target: Target): Promise<boolean> {
    const { claim, attempts } = drain;
    const { parked, isAll, inFlight } = await this.take(drain, target);
    if (parked.length > 0) await attempts.attempt(parked);
    if (isAll && attempts.inProgress) await attempts.progress();
    if (attempts.hasStopped) return this.openBreaker(drain);
    if (!isAll || parked.length > 0 || attempts.inProgress) return true;
    if (!inFlight) return (await this.store.finishClosing(claim, this.rates.msToRest(claim.webhookId))) === 'more';
    await this.release(claim, { when: 'later', inMs: IN_FLIGHT_LOOK_MS });
    return false;
  }

  /**
   * The receiver fails. Returns whether to continue: its webhook is disabled or has another URL by now, or another replica may own the backlog, whose owner opens
   * the breaker.
   */
  private async openBreaker({ lease, claim, attempts }: Drain): Promise<boolean> {
    const { webhookId } = claim;
    const { disabled, failing, retryAfterMs } = await attempts.end();
    if (disabled || !failing || !(await lease.renew()) || !(await this.store.openBreaker(failing, 0))) return true;
    await this.release(claim, this.nextProbe({ failedProbes: 0, retryAfterMs }));
    this.targets.outdate(webhookId);
    this.log.info({ webhook_id: webhookId, reason: 'failing' }, 'webhook.spilled');
    return false;
  }

  /** Takes deliveries to attempt now, as many as the memory and the webhook's rate allow. `isAll`: no others are due. */
  private async take(drain: Drain, target: Target): Promise<Taken & { isAll: boolean }> {
    const { webhookId, ownerId } = drain.claim;
    const { size } = drain.attempts;
    const limit = target.rateLimit === null ? size : await this.rates.take(webhookId, target.rateLimit, size);
    const memory = await this.memory.reserve(ownerId, () => drain.attempts.isOver);
    if (!memory) {
      this.rates.giveBack(webhookId, limit);
      return { parked: [], inFlight: false, isAll: false };
    }
    let parked: Parked[] = [];
    try {
      const taken = await this.takeOrClose(drain, target, limit, memory);
      ({ parked } = taken);
      return { ...taken, isAll: parked.length < limit && !memory.isScarce(parked) };
    } finally {
      memory.keep(parked);
      // fewer may be due, or their bodies are large
      this.rates.giveBack(webhookId, limit - parked.length);
    }
  }

  private async takeOrClose({ claim, receiver, attempts }: Drain, target: Target, limit: number, memory: Reservation): Promise<Taken> {
    const { webhookId } = claim;
    const { except } = attempts;
    const taken = await this.store.take(webhookId, limit, { bytes: memory.bytes, except });
    const count = taken.parked.length;
    const endInSight = count > 0 && count < limit && !memory.isScarce(taken.parked) && !taken.inFlight && except.emitters.length === 0;
    if (!endInSight || target.rateLimit !== null || target.mode !== 'spilled' || receiver.duration >= CLOSING_MAX_DURATION_MS) return taken;
    await this.store.startClosing(claim, CLOSING_MS);
    this.targets.outdate(webhookId);
    // with the deliveries that were parked until now
    return this.store.take(webhookId, limit, { bytes: memory.bytes, except: attempts.except });
  }

  /** Attempts one delivery to a failing receiver. Returns whether to continue: it has recovered, or its webhook is disabled. */
  private async probe(drain: Drain, failedProbes: number): Promise<boolean> {
    const { lease, claim } = drain;
    const memory = await this.memory.reserve(claim.ownerId, () => this.stopping || !lease.holds);
    if (!memory) return true;
    let taken: Taken = { parked: [], inFlight: false };
    try {
      taken = await this.store.takeProbe(claim.webhookId, failedProbes);
    } finally {
      memory.keep(taken.parked);
    }
    const [parked] = taken.parked;
    if (!parked) {
      if (taken.inFlight) await this.release(claim, { when: 'later', inMs: IN_FLIGHT_LOOK_MS });
      else await this.store.closeBreaker(claim);
      return !taken.inFlight;
    }
    try {
      return await this.probeWith(parked, drain, failedProbes);
    } finally {
      this.memory.free(claim.ownerId, taken.parked);
    }
  }

  private async probeWith(parked: Parked, { lease, claim, receiver }: Drain, failedProbes: number): Promise<boolean> {
    const { webhookId } = claim;
    // its owner may have changed, disabled or deleted it while this probe waited for memory
    const target = await this.targets.ofBacklog(webhookId);
    if (!target?.active || !lease.holds) return true;
    receiver.begins(target.url);
    const outcome = await this.attempts.make(target, parked.delivery, stepOfProbe(parked, this.config.retrySchedule));
    receiver.addDuration(outcome.attempt.duration_ms);
    receiver.count(target.url, parked.delivery, outcome, !parked.fresh);
    const stored = outcome.verdict === 'gone' ? await this.settlements.gone(target, parked, outcome) : outcome;
    const ended = [{ target, settlement: settlementOfProbe(parked, stored) }];
    ended.forEach((each) => this.settlements.ended(each));
    await this.settlements.settle(claim, ended);
    const disabled = await this.settlements.settled(ended);
    if (disabled || outcome.verdict === 'gone') return true;
    if (outcome.verdict === 'delivered') {
      await this.store.closeBreaker(claim);
      this.log.info({ webhook_id: webhookId, failed_probes: failedProbes }, 'webhook.recovered');
      return true;
    }
    await this.release(claim, this.nextProbe({ failedProbes: failedProbes + 1, retryAfterMs: outcome.retryAfterMs }));
    return false;
  }

  private release(claim: Claim, next: NextLook): Promise<void> {
    return this.store.release(claim, next, this.rates.msToRest(claim.webhookId));
  }

  private nextProbe(failed: FailedProbes): { when: 'probe'; inMs: number; failedProbes: number } {
    const { failedProbes } = failed;
    return { when: 'probe', inMs: probePause(this.config.retrySchedule, failed, this.random()), failedProbes };
  }
}
