import type { Delivery, Outcome } from './delivery.js';
import { disabledReports, type Notices } from './notices.js';
import type { Target, Targets } from './receivers/targets.js';
import type { DeliveryStore } from './store/delivery-store.js';

interface Parts {
  store: DeliveryStore;
  targets: Targets;
  notices: Notices;
}

/**
 * Disables a webhook whose receiver has returned 410, unless it has another URL by now: then the delivery is attempted there. Returns the outcome to store.
 * Other attempts in flight may have the same outcome, but one of them disables it.
 */
export async function disableGone(
  { store, targets, notices }: Parts,
  target: Target,
  delivery: Delivery,
  outcome: Outcome,
): Promise<Outcome> {
  if (await store.disable(target, disabledReports(target, 'gone', delivery))) notices.disabled(target, 'gone');
  targets.outdate(target.id);
  return (await targets.hasMoved(target)) ? { ...outcome, pauseMs: 0 } : outcome;
}
