import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { WebhookId } from '#contracts';
import { LOG, type Log } from '#observability';
import { type DeliveredEntry, DeliveredRepository } from './delivered.repository.js';
import type { Attempt, Delivery } from '../delivery.js';

/** At least this many of the newest deliveries are kept per webhook. */
export const KEPT = 100;
const FLUSH_MS = 2000;

/**
 * The successful deliveries that users can list. They are gathered in memory and written periodically, per webhook only those that will be kept: under
 * load, a delivery costs a push into an array. A crash loses the newest entries of this list, but no delivery.
 */
@Injectable()
export class DeliveredLog implements OnApplicationBootstrap, OnApplicationShutdown {
  private recent = new Map<WebhookId, DeliveredEntry[]>();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly repository: DeliveredRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  add({ webhookId, place, emitterId }: Delivery, attempts: Attempt[]): void {
    let entries = this.recent.get(webhookId);
    if (!entries) this.recent.set(webhookId, (entries = []));
    // without the event: its bytes would keep the whole fetched batch in memory
    entries.push({ ms: place.ms, seq: place.seq, emitter_id: emitterId, attempts });
    // half of them at a time, so that entries are rarely moved
    if (entries.length >= 2 * KEPT) entries.splice(0, KEPT);
  }

  /** Writes the gathered entries. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(async () => {
      if (this.recent.size === 0) return;
      const gathered = this.recent;
      this.recent = new Map();
      for (const [webhookId, entries] of gathered) gathered.set(webhookId, entries.slice(-KEPT));
      try {
        await this.repository.add(gathered, KEPT);
      } catch (error) {
        this.log.warn({ webhooks: gathered.size, err: error }, 'delivered.not-written');
      }
    });
    return this.flushing;
  }
}
