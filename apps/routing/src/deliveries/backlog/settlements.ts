import type { RoutingConfig } from '../../routing.config.js';
import type { RetryStep } from '../attempt/attempts.js';
import { longestSilence, scheduleLength } from '../attempt/retry-schedule.js';
import { keptAttempts, type Outcome } from '../delivery.js';
import { disableGone } from '../gone-receivers.js';
import type { DeliveredLog } from '../history/delivered-log.js';
import { disabledReports, failureReportOf, type Notices } from '../notices.js';
import type { Target, Targets } from '../receivers/targets.js';
import type { Claim, DeliveryStore, Parked, ReportOf, Settlement } from '../store/delivery-store.js';

/** The outcome of an attempt, and the webhook as it was attempted. */
export interface Ended {
  target: Target;
  settlement: Settlement;
}

/** Stores the outcomes of attempts from backlogs, and what they mean for their webhooks. */
export class Settlements {
  constructor(
    private readonly config: RoutingConfig,
    private readonly store: DeliveryStore,
    private readonly targets: Targets,
    private readonly delivered: DeliveredLog,
    private readonly notices: Notices,
  ) {}

  /** The attempt has ended, and its outcome will be stored. A delivery that succeeds is listed before it leaves the backlog: otherwise, it would be in no list meanwhile. */
  ended({ settlement }: Ended): void {
    if (settlement.delivered) this.delivered.add(settlement.delivery, settlement.attempts);
  }

  /** At least one, all of one backlog. */
  async settle({ webhookId, leaseId }: Claim, ended: Ended[]): Promise<void> {
    const { target } = ended[0]!;
    const settlements = ended.map(({ settlement }) => settlement);
    const report: ReportOf = (failures) => failureReportOf(target, failures);
    const givenUp = await this.store.settle(webhookId, settlements, { leaseId, report });
    for (const { delivery } of givenUp) this.notices.gaveUp(target, delivery);
  }

  /** These outcomes are stored. Returns whether the webhook was disabled, because its receiver has been failing for too long. */
  async settled(ended: Ended[]): Promise<boolean> {
    const failed = ended.findLast(({ settlement }) => !settlement.delivered);
    if (!failed) return false;
    const { target, settlement } = failed;
    await this.store.markFailing(target, longestSilence(this.config.retrySchedule));
    const reports = disabledReports(target, 'failing', settlement.delivery);
    if (!(await this.store.disable(target, reports, this.config.disableAfterMs))) return false;
    this.targets.outdate(target.id);
    this.notices.disabled(target, 'failing');
    return true;
  }

  /** The receiver has returned 410. Returns the outcome to store. */
  gone(target: Target, { delivery }: Parked, outcome: Outcome): Promise<Outcome> {
    return disableGone({ store: this.store, targets: this.targets, notices: this.notices }, target, delivery, outcome);
  }
}

export const stepOf = ({ tries, sinceFirstMs }: Parked): RetryStep => ({ tries: tries + 1, sinceFirstMs });

/**
 * A probe that fails says nothing about its event: the delivery keeps its place in the retry schedule, and does not wait for long when the receiver has
 * recovered. The schedule ends when its time has passed.
 */
export const stepOfProbe = ({ tries, sinceFirstMs }: Parked, schedule: readonly number[]): RetryStep => ({
  tries: sinceFirstMs > scheduleLength(schedule) ? schedule.length + 1 : Math.max(1, tries),
  sinceFirstMs,
});

export function settlementOfProbe(parked: Parked, outcome: Outcome): Settlement {
  const settlement = settlementOf(parked, outcome);
  if (settlement.delivered || outcome.verdict === 'gone') return settlement;
  const dueInMs = parked.dueInMs - outcome.attempt.duration_ms;
  const pauseMs = dueInMs > 0 ? Math.max(dueInMs, outcome.retryAfterMs ?? 0) : settlement.pauseMs;
  return { ...settlement, tries: Math.max(1, parked.tries), pauseMs };
}

export function settlementOf(parked: Parked, outcome: Outcome): Settlement {
  const { delivery, revision } = parked;
  const { verdict, attempt, tries, pauseMs } = outcome;
  const attempts = keptAttempts([...parked.attempts, attempt]);
  if (verdict === 'delivered') return { delivery, delivered: true, attempts };
  const leftMs = parked.dueInMs - attempt.duration_ms;
  if (verdict === 'gone' || leftMs <= 0) return { delivery, delivered: false, attempts, tries, pauseMs, revision };
  // a user requested it before its time: the schedule stays as it is, unless the receiver requests another pause
  const laterMs = Math.max(Math.min(pauseMs ?? leftMs, leftMs), outcome.retryAfterMs ?? 0);
  return { delivery, delivered: false, attempts, tries: Math.max(1, parked.tries), pauseMs: laterMs, revision };
}
