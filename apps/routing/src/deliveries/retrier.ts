import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { WebhookId } from '#contracts';
import { LOG, type Log } from '#observability';
import { DeliveriesRepository } from './deliveries.repository.js';
import { Dispatcher } from './dispatcher.js';

const POLL_MS = 250;
const WEBHOOKS_AT_ONCE = 20;
const DELIVERIES_AT_ONCE = 100;
/** Longer than that many attempts can take that all time out. */
const LEASE_MS = 10 * 60_000;

/** Delivers again what is parked and due. Several replicas share the work: each claims webhooks of its own. */
@Injectable()
export class Retrier implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private work: Promise<void> = Promise.resolve();
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly deliveries: DeliveriesRepository,
    private readonly dispatcher: Dispatcher,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    await this.work;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      try {
        const room = WEBHOOKS_AT_ONCE - this.underWay.size;
        for (const webhookId of room > 0 ? await this.deliveries.claim(room, LEASE_MS) : []) {
          const retry: Promise<void> = this.retry(webhookId).finally(() => this.underWay.delete(retry));
          this.underWay.add(retry);
        }
      } catch (error) {
        this.log.warn({ err: error }, 'retrier.interrupted');
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async retry(webhookId: WebhookId): Promise<void> {
    try {
      const due = await this.deliveries.due(webhookId, DELIVERIES_AT_ONCE);
      await Promise.all(due.map((parked) => this.dispatcher.retry(parked)));
      await this.deliveries.release(webhookId);
    } catch (error) {
      this.log.warn({ webhook_id: webhookId, err: error }, 'retrier.interrupted');
    }
  }
}
