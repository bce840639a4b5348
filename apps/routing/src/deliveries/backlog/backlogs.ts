import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { DueWork } from '#due-work';
import { LOG, type Log } from '#observability';
import { RANDOM, type Random } from '../attempt/retry-schedule.js';
import { type Claim, DeliveryStore } from '../store/delivery-store.js';
import { Drainer } from './drainer.js';
import { LEASE_MS } from './lease.js';

/** The number of backlogs that are drained at a time. */
export const AT_ONCE = 500;
/** The lease of an interrupted backlog expires, and another replica continues. */
const STOP_MS = 5000;

/** Finds backlogs with due deliveries and drains them. Replicas share the work: each leases backlogs. */
@Injectable()
export class Backlogs extends DueWork {
  private readonly underWay = new Set<Promise<void>>();

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
    await Promise.race([Promise.all(this.underWay), new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())]);
  }

  async handleDue(): Promise<number> {
    const claims = await this.store.claim(this.capacity, randomUUID(), LEASE_MS);
    for (const claim of claims) this.drain(claim);
    return claims.length;
  }

  /** Without capacity nothing can be handled until a backlog has been drained. */
  protected override async msToNext(): Promise<number | null> {
    return this.capacity > 0 ? super.msToNext() : null;
  }

  private get capacity(): number {
    return AT_ONCE - this.underWay.size;
  }

  private drain(claim: Claim): void {
    const draining: Promise<void> = this.drainer.drain(claim).finally(() => {
      this.underWay.delete(draining);
      // what is due next in this backlog, or one for which there was no capacity
      this.scheduled(0);
    });
    this.underWay.add(draining);
  }
}
