import type { EmitterId, WebhookDelivery } from '#contracts';
import { eventIdOf } from '#events';
import type { DeliveredEntry } from './delivered.repository.js';
import type { Attempt } from './delivery.js';
import { deliveryIdOf } from './delivery-id.js';

/** A delivery that is not made, as it's listed. */
export interface ListedRow {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  attempts: Attempt[];
  /** null: given up. */
  due_at: Date | null;
}

/** As the API answers it. */
export const pendingOrFailed = ({ ms, seq, emitter_id, attempts, due_at }: ListedRow): WebhookDelivery => ({
  id: deliveryIdOf({ ms, seq }),
  event_id: eventIdOf({ ms, seq }),
  emitter_id,
  status: due_at === null ? 'failed' : 'pending',
  next_attempt_at: due_at === null ? null : Math.floor(due_at.getTime() / 1000),
  created_at: Math.floor(ms / 1000),
  attempts,
});

export const succeeded = ({ ms, seq, emitter_id, attempts }: DeliveredEntry): WebhookDelivery => ({
  id: deliveryIdOf({ ms, seq }),
  event_id: eventIdOf({ ms, seq }),
  emitter_id,
  status: 'succeeded',
  next_attempt_at: null,
  created_at: Math.floor(ms / 1000),
  attempts,
});
