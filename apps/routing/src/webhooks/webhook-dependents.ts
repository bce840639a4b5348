import type { WebhookId } from '#contracts';
import type { Transaction } from '#database';

/** What other features do when a webhook changes, so that this one knows none of them. */
export abstract class WebhookDependents {
  /** Runs in the transaction that creates or changes a webhook: waiting deliveries may succeed now. */
  abstract webhookChanged(transaction: Transaction, id: WebhookId): Promise<void>;
  /** Runs in the transaction that deletes a webhook: deletes everything that belongs to it. */
  abstract webhookDeleted(transaction: Transaction, id: WebhookId): Promise<void>;
}
