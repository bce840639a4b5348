import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { type Claim, DeliveryStore } from '../store/delivery-store.js';
import { Drainer, LEASE_MS } from './drainer.js';

const LOOK_MS = 100;
/** The number of backlogs that are drained at a time. */
const AT_ONCE = 500;
/** The lease of an interrupted backlog expires, and another replica continues. */
const STOP_MS = 5000;

/** Finds backlogs with due deliveries and drains them. Replicas share the work: each leases backlogs. */
@Injectable()
export class Backlogs implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly underWay = new Set<Promise<void>>();
  private stopping = false;
  private work: Promise<void> = Promise.resolve();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly store: DeliveryStore,
    private readonly drainer: Drainer,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.drainer.stop();
    await this.work;
    await Promise.race([Promise.all(this.underWay), new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())]);
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      try {
        const capacity = AT_ONCE - this.underWay.size;
        for (const claim of capacity > 0 ? await this.store.claim(capacity, randomUUID(), LEASE_MS) : []) this.drain(claim);
      } catch (error) {
        this.log.warn({ err: error }, 'backlogs.interrupted');
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  private drain(claim: Claim): void {
    const draining: Promise<void> = this.drainer.drain(claim).finally(() => this.underWay.delete(draining));
    this.underWay.add(draining);
  }
}
