import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { UserId } from '#contracts';
import { DueWork } from '#due-work';
import { SumPerKey } from '#limits';
import { LOG, type Log } from '#observability';
import { accountShareOf } from '../../routing.config.js';
import { RANDOM, type Random } from '../attempt/retry-schedule.js';
import { type Claim, DeliveryStore } from '../store/delivery-store.js';
import { Drainer } from './drainer.js';
import { LEASE_MS } from './lease.js';

/** The number of backlogs that are drained at a time. */
export const AT_ONCE = 500;
/** The same for those of one account. */
export const OF_ACCOUNT = accountShareOf(AT_ONCE);
/** While all that is due are backlogs of accounts that have their share. */
const SHARE_LOOK_MS = 500;

/**
 * Finds backlogs with due deliveries and drains them. Replicas share the work: each leases backlogs. Accounts share it, too: none has all of a replica's
 * drains, and while others may wait, each drain ends after a turn.
 */
@Injectable()
export class Backlogs extends DueWork {
  private readonly underWay = new Set<Promise<void>>();
  /** How many of them each account has. */
  private readonly taken = new SumPerKey<UserId>();
  /** Nothing could be claimed, perhaps because of the shares. */
  private mustWait = false;

  constructor(
    @Inject(LOG) log: Log,
    private readonly store: DeliveryStore,
    private readonly drainer: Drainer,
    @Inject(RANDOM) random: Random,
  ) {
    super(store, log, { batch: AT_ONCE, failure: 'backlogs.interrupted', random });
  }

  override async beforeApplicationShutdown(): Promise<void> {
    this.drainer.stop();
    await super.beforeApplicationShutdown();
    await Promise.all(this.underWay);
  }

  async handleDue(): Promise<number> {
    const claims = await this.store.claim(this.capacity, randomUUID(), LEASE_MS, { most: OF_ACCOUNT, taken: this.taken.perKey });
    for (const claim of claims) this.drain(claim);
    this.mustWait = claims.length === 0 && [...this.taken.perKey.values()].some((count) => count >= OF_ACCOUNT);
    return claims.length;
  }

  /** Without capacity nothing can be handled until a backlog has been drained. */
  protected override async msToNext(): Promise<number | null> {
    if (this.capacity === 0) return null;
    if (!this.mustWait) return super.msToNext();
    this.mustWait = false;
    return SHARE_LOOK_MS;
  }

  private get capacity(): number {
    return AT_ONCE - this.underWay.size;
  }

  private drain(claim: Claim): void {
    const { ownerId } = claim;
    this.taken.add(ownerId, 1);
    const othersWait = () => this.capacity === 0 || this.taken.of(ownerId) >= OF_ACCOUNT;
    const draining: Promise<void> = this.drainer.drain(claim, othersWait).finally(() => {
      this.underWay.delete(draining);
      this.taken.add(ownerId, -1);
      // what is due next in this backlog, or one for which there was no capacity
      this.scheduled(0);
    });
    this.underWay.add(draining);
  }
}
