import { Injectable } from '@nestjs/common';
import type { WebhookId } from '#contracts';
import { Database } from '#database';
import type { Mode, TargetRow } from '../../webhooks/target.js';
import { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import type { Delivery } from '../delivery.js';
import { BacklogsRepository } from './backlogs.repository.js';
import { type Claim, DeliveryStore, type NextLook, type Parked, type Settlement } from './delivery-store.js';
import { ParkedDeliveriesRepository } from './parked-deliveries.repository.js';

/**
 * The store in PostgreSQL: three tables, each with its own repository, and the transactions over them.
 *
 * Locks are taken in one order: webhook, parked_delivery, backlog. Parking a delivery locks the webhook against changes (`FOR SHARE`), so a change of
 * its mode happens before a delivery is parked, or sees it.
 */
@Injectable()
export class PostgresDeliveryStore extends DeliveryStore {
  constructor(
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
    private readonly parked: ParkedDeliveriesRepository,
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

  async parkInFlight(delivery: Delivery, leaseMs: number): Promise<void> {
    const { webhookId } = delivery;
    await this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.spill(transaction, webhookId))) return;
      await this.parked.addInFlight(transaction, delivery, leaseMs);
      await this.backlogs.wake(transaction, webhookId);
    });
  }

  parkFailed(failed: Settlement & { delivered: false }): Promise<void> {
    return this.parked.parkFailed(failed);
  }

  async spill(webhookId: WebhookId, breaker: { probeInMs: number } | null): Promise<void> {
    await this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.spill(transaction, webhookId))) return;
      if (breaker) await this.backlogs.openBreaker(transaction, webhookId, breaker.probeInMs);
      else await this.backlogs.wake(transaction, webhookId);
    });
  }

  settle(webhookId: WebhookId, settlements: Settlement[]): Promise<void> {
    return this.parked.settle(webhookId, settlements);
  }

  markFailing(webhookId: WebhookId): Promise<void> {
    return this.webhooks.markFailing(webhookId);
  }

  async disable(webhookId: WebhookId, ifFailingForMs?: number): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      if (!(await this.webhooks.disable(transaction, webhookId, ifFailingForMs))) return false;
      await this.parked.giveUpAll(transaction, webhookId);
      return true;
    });
  }

  claim(limit: number, leaseId: string, leaseMs: number): Promise<Claim[]> {
    return this.backlogs.claim(limit, leaseId, leaseMs);
  }

  renew(claim: Claim, leaseMs: number): Promise<{ failedProbes: number | null } | undefined> {
    return this.backlogs.renew(claim, leaseMs);
  }

  take(webhookId: WebhookId, limit: number): Promise<{ parked: Parked[]; inFlight: boolean }> {
    return this.parked.take(webhookId, limit);
  }

  takeProbe(webhookId: WebhookId): Promise<Parked | undefined> {
    return this.parked.takeProbe(webhookId);
  }

  closeBreaker(claim: Claim): Promise<void> {
    return this.backlogs.closeBreaker(claim);
  }

  startClosing({ webhookId }: Claim, forMs: number): Promise<void> {
    return this.webhooks.startClosing(webhookId, forMs);
  }

  async finishClosing(claim: Claim): Promise<'direct' | 'more'> {
    const { webhookId } = claim;
    return this.database.transaction(async (transaction) => {
      await this.webhooks.lock(transaction, webhookId);
      // a separate statement, to see deliveries that were parked while this one waited for the lock
      if (await this.parked.hasFresh(transaction, webhookId)) return 'more';
      const backlog = await this.backlogs.lock(transaction, claim);
      // another replica has opened the breaker
      if (backlog && backlog.failedProbes !== null) return 'more';
      if (backlog) {
        await this.webhooks.finishClosing(transaction, webhookId);
        await this.backlogs.releaseUntilDue(transaction, claim);
      }
      return 'direct';
    });
  }

  async release(claim: Claim, next: NextLook): Promise<void> {
    if (next.when !== 'next due') return this.backlogs.release(claim, next);
    await this.database.transaction((transaction) => this.backlogs.releaseUntilDue(transaction, claim));
  }
}
