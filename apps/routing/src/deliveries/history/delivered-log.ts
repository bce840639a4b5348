import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { type EmitterId, isId, type WebhookId } from '#contracts';
import { isTransient } from '#database';
import { LOG, type Log } from '#observability';
import type { Attempt, Delivery } from '../delivery.js';
import { type DeliveredEntry, DeliveredRepository, KEPT } from './delivered.repository.js';

/** The deliveries of all webhooks that are gathered in memory, several times as many as are made between two flushes: there are more only if the database is slow. */
export const MOST_GATHERED = 50_000;
/** The pause between two flushes. */
const FLUSH_MS = 2000;
/** The entries of each webhook that are written again after a failure: enough to show that its receiver responds. */
const REPEATED = 10;

/**
 * The successful deliveries that users can list. They are gathered in memory, and written at once after a pause, otherwise every two seconds, per webhook
 * only those that will be kept: under load, a delivery costs a push into an array. While the database is slow, those of some webhooks are forgotten, so that
 * they do not fill the memory. A crash loses those that are not written from this list, but no delivery: their positions are committed earlier, so they are
 * not delivered again.
 */
@Injectable()
export class DeliveredLog implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly recent = new Map<WebhookId, DeliveredEntry[]>();
  /** How many entries it has. */
  private count = 0;
  private isRunning = false;
  private timer: NodeJS.Timeout | undefined;
  private flushedAt = -Infinity;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly repository: DeliveredRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.isRunning = true;
    this.schedule();
  }

  async onApplicationShutdown(): Promise<void> {
    this.isRunning = false;
    clearTimeout(this.timer);
    await this.flush();
  }

  /** Flushes soon, if there is something to write. During a flush, the next one is not scheduled: a slow database would let them pile up. */
  private schedule(): void {
    if (this.timer || !this.isRunning || this.recent.size === 0) return;
    const pause = Math.max(0, this.flushedAt + FLUSH_MS - performance.now());
    this.timer = setTimeout(() => {
      void this.flush().then(() => {
        this.timer = undefined;
        this.schedule();
      });
    }, pause).unref();
  }

  add({ webhookId, place, emitterId }: Delivery, attempts: Attempt[]): void {
    let entries = this.recent.get(webhookId);
    if (!entries) this.recent.set(webhookId, (entries = []));
    // without the event: its bytes would keep the whole fetched batch in memory
    entries.push({ ms: place.ms, seq: place.seq, emitter_id: emitterId, attempts });
    this.count += 1;
    // half of them at a time, so that entries are rarely moved
    if (entries.length >= 2 * KEPT) this.count -= entries.splice(0, KEPT).length;
    if (this.count > MOST_GATHERED) {
      const [first] = this.recent.keys();
      if (first) this.take([first]);
    }
    this.schedule();
  }

  /**
   * Writes the gathered entries: all, those of one webhook, or those of the webhooks that have some of one emitter. After a failure the next flush writes the
   * newest ones.
   */
  flush(only?: WebhookId | EmitterId): Promise<void> {
    this.flushing = this.flushing.then(async () => {
      const gathered = this.take(this.idsOf(only));
      if (gathered.size === 0) return;
      if (only === undefined) this.flushedAt = performance.now();
      try {
        await this.repository.add(gathered, KEPT);
      } catch (error) {
        this.log.warn({ webhooks: gathered.size, err: error }, 'delivered.not-written');
        if (!isTransient(error)) return;
        for (const [webhookId, entries] of gathered) {
          const repeated = entries.slice(-REPEATED);
          this.recent.set(webhookId, [...repeated, ...(this.recent.get(webhookId) ?? [])]);
          this.count += repeated.length;
        }
        this.schedule();
      }
    });
    return this.flushing;
  }

  private idsOf(only: WebhookId | EmitterId | undefined): WebhookId[] {
    if (only === undefined) return [...this.recent.keys()];
    if (isId('webhook', only)) return [only];
    return [...this.recent].filter(([, entries]) => entries.some(({ emitter_id }) => emitter_id === only)).map(([id]) => id);
  }

  private take(ids: WebhookId[]): Map<WebhookId, DeliveredEntry[]> {
    const taken = new Map<WebhookId, DeliveredEntry[]>();
    for (const id of ids) {
      const entries = this.recent.get(id);
      if (!entries) continue;
      taken.set(id, entries.slice(-KEPT));
      this.recent.delete(id);
      this.count -= entries.length;
    }
    return taken;
  }
}
