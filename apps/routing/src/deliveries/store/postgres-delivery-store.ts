import { Inject, Injectable } from '@nestjs/common';
import type { WebhookId } from '#contracts';
import { Database, type Session, type Transaction } from '#database';
import { LOG, type Log } from '#observability';
import { type AccountRecord, addToOutbox } from '#outbox';
import type { Delivery } from '../delivery.js';
import { type Attempted, type Mode, type TargetRow, WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { BacklogsRepository } from './backlogs.repository.js';
import {
  type Claim,
  DeliveryStore,
  type Except,
  type Failed,
  type NextLook,
  type Renewed,
  type ReportOf,
  type Settlement,
  type SettleOptions,
  type Shares,
  type Taken,
  type TakeOptions,
} from './delivery-store.js';
import { NextDeliveriesRepository } from './next-deliveries.repository.js';
import { ParkedDeliveriesRepository } from './parked-deliveries.repository.js';

/**
 * The store in PostgreSQL: three tables, each with the repository that writes it, one that only reads, and the transactions over them.
 *
 * Locks are taken in one order: webhook, parked_delivery, backlog. Parking a delivery locks the webhook against changes (`FOR SHARE`), so a change of
 * its mode happens before a delivery is parked, or sees it.
 */
@Injectable()
export class PostgresDeliveryStore extends DeliveryStore {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly next: NextDeliveriesRepository,
    private readonly backlogs: BacklogsRepository,
  ) {
    super();
  }

  findTargets(ids: WebhookId[]): Promise<TargetRow[]> {
    return this.webhooks.findTargets(ids);
  }

  parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'> {
    return this.parked.parkFresh(webhookId, deliveries);
  }

  parkInFlight(delivery: Delivery, leaseMs: number): Promise<string | undefined> {
    const { webhookId } = delivery;
    return this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.spill(transaction, webhookId, 'slow'))) return undefined;
      const revision = await this.parked.addInFlight(transaction, delivery, leaseMs);
      await this.backlogs.wake(transaction, webhookId);
      return revision;
    });
  }

  parkFailed(failed: Failed, report?: ReportOf): Promise<Failed[]> {
    return this.reporting(failed.delivery.webhookId, [failed], report, (session) => this.parked.parkFailed(session, failed));
  }

  async spill(webhookId: WebhookId): Promise<void> {
    await this.database.transaction(async (transaction) => {
      if (await this.webhooks.spill(transaction, webhookId, 'slow')) await this.backlogs.wake(transaction, webhookId);
    });
  }

  openBreaker(receiver: Attempted, probeInMs: number): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.spill(transaction, receiver.id, 'failing', receiver.url))) return false;
      await this.backlogs.openBreaker(transaction, receiver.id, probeInMs);
      return true;
    });
  }

  settle(webhookId: WebhookId, settlements: Settlement[], { leaseId, report }: SettleOptions = {}): Promise<Failed[]> {
    return this.reporting(webhookId, settlements, report, (session) => this.parked.settle(session, webhookId, settlements, leaseId));
  }

  markFailing(receiver: Attempted, pauseMs: number): Promise<void> {
    return this.webhooks.markFailing(receiver, pauseMs);
  }

  async disable(receiver: Attempted, reports: AccountRecord[], ifFailingForMs?: number): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.disable(transaction, receiver, ifFailingForMs))) return false;
      await this.backlogs.wakeNow(transaction, receiver.id);
      await addToOutbox(transaction, reports);
      return true;
    });
  }

  async giveUp(webhookId: WebhookId): Promise<number> {
    const count = await this.parked.giveUp(webhookId);
    if (count === 0) await this.webhooks.endGivingUp(webhookId);
    return count;
  }

  msToNext(): Promise<number | null> {
    return this.backlogs.msToNext();
  }

  listen(notify: (inMs: number) => void): void {
    this.backlogs.listen(notify);
  }

  claim(limit: number, leaseId: string, leaseMs: number, shares: Shares): Promise<Claim[]> {
    return this.backlogs.claim(limit, leaseId, leaseMs, shares);
  }

  renew(claim: Claim, leaseMs: number): Promise<Renewed | undefined> {
    return this.backlogs.renew(claim, leaseMs);
  }

  take(webhookId: WebhookId, limit: number, options?: TakeOptions): Promise<Taken> {
    return this.next.take(webhookId, limit, options);
  }

  findTakeable(backlogs: { webhookId: WebhookId; except: Except }[]): Promise<ReadonlySet<WebhookId>> {
    return this.next.findTakeable(backlogs);
  }

  takeProbe(webhookId: WebhookId, failedProbes: number): Promise<Taken> {
    return this.next.takeProbe(webhookId, failedProbes);
  }

  closeBreaker(claim: Claim): Promise<void> {
    return this.backlogs.closeBreaker(claim);
  }

  startClosing({ webhookId }: Claim, forMs: number): Promise<void> {
    return this.webhooks.startClosing(webhookId, forMs);
  }

  async finishClosing(claim: Claim, restMs = 0): Promise<'direct' | 'more'> {
    const { webhookId } = claim;
    return this.database.transaction(async (transaction) => {
      await this.webhooks.lock(transaction, webhookId);
      // a separate statement, to see deliveries that were parked while this one waited for the lock
      if (await this.next.hasFresh(transaction, webhookId)) return 'more';
      const backlog = await this.backlogs.lock(transaction, claim);
      // another replica has opened the breaker
      if (backlog && backlog.failedProbes !== null) return 'more';
      if (backlog) {
        await this.webhooks.finishClosing(transaction, webhookId);
        await this.backlogs.releaseUntilDue(transaction, claim, restMs);
      }
      return 'direct';
    });
  }

  async release(claim: Claim, next: NextLook, restMs = 0): Promise<void> {
    if (next.when !== 'next due') return this.backlogs.release(claim, next, restMs);
    await this.database.transaction((transaction) => this.backlogs.releaseUntilDue(transaction, claim, restMs));
  }

  /** Runs `store`, which returns the failures after which deliveries are given up, in one transaction with the report about them. */
  private async reporting(
    webhookId: WebhookId,
    settlements: Settlement[],
    report: ReportOf | undefined,
    store: (session: Session) => Promise<Failed[]>,
  ): Promise<Failed[]> {
    const mayGiveUp = settlements.some((each) => !each.delivered && each.pauseMs === null);
    if (!report || !mayGiveUp) return store(this.database);
    return this.database.transaction(async (transaction) => {
      // the report locks it, too, but a webhook is locked before its deliveries
      await this.webhooks.lock(transaction, webhookId);
      const givenUp = await store(transaction);
      const record = report(givenUp);
      if (record) await this.report(transaction, webhookId, record);
      return givenUp;
    });
  }

  /** A report that cannot be stored does not prevent that the deliveries are. */
  private async report(transaction: Transaction, webhookId: WebhookId, report: AccountRecord): Promise<void> {
    await transaction.query('SAVEPOINT report');
    try {
      await this.webhooks.reportFailure(transaction, webhookId, report);
    } catch (error) {
      await transaction.query('ROLLBACK TO SAVEPOINT report');
      this.log.warn({ webhook_id: webhookId, err: error }, 'notice.not-sent');
    }
  }
}
