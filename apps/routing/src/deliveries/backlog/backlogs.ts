import { randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { type Claim, DeliveryStore } from '../store/delivery-store.js';
import { Drainer, LEASE_MS } from './drainer.js';

const LOOK_MS = 100;
/** Backlogs that are worked on at a time. */
const AT_ONCE = 500;
/** After an interruption the lease runs out, and somebody takes it up again. */
const STOP_MS = 5000;

/** Finds backlogs of which something is due and lets them be drained. Replicas share them: each leases its own. */
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
        const room = AT_ONCE - this.underWay.size;
        for (const claim of room > 0 ? await this.store.claim(room, randomUUID(), LEASE_MS) : []) this.drain(claim);
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
