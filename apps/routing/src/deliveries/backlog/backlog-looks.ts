import type { WebhookId } from '#contracts';
import type { DeliveryStore, Except } from '../store/delivery-store.js';

/** How often to look for deliveries that have become due while attempts take long. */
const LOOK_MS = 500;

/** A backlog that waits for the end of attempts, or for deliveries that can be attempted meanwhile. */
export interface WaitingBacklog {
  webhookId: WebhookId;
  /** The deliveries in progress, and those that must wait for them. */
  except: () => Except;
  /** Called after each look. */
  looked: (isTakeable: boolean) => void;
}

/** Looks for deliveries in all waiting backlogs of this process together: one statement, however many attempts are slow. */
export class BacklogLooks {
  private readonly waiting = new Set<WaitingBacklog>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly store: Pick<DeliveryStore, 'findTakeable'>) {}

  /** Returns a function that ends the looks for this backlog. */
  add(backlog: WaitingBacklog): () => void {
    this.waiting.add(backlog);
    this.timer ??= setTimeout(() => void this.look(), LOOK_MS);
    return () => void this.waiting.delete(backlog);
  }

  private async look(): Promise<void> {
    const waiting = [...this.waiting];
    const takeable = waiting.length === 0 ? undefined : await this.find(waiting).catch(() => undefined);
    // if this has failed, each backlog is read separately, and its failure is logged
    for (const { webhookId, looked } of waiting) looked(takeable?.has(webhookId) ?? true);
    this.timer = this.waiting.size === 0 ? undefined : setTimeout(() => void this.look(), LOOK_MS);
  }

  private find(waiting: WaitingBacklog[]): Promise<ReadonlySet<WebhookId>> {
    return this.store.findTakeable(waiting.map(({ webhookId, except }) => ({ webhookId, except: except() })));
  }
}
