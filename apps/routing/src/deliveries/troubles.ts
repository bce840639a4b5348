import { eventIdOf } from '#events';
import type { Outcome } from './attempts.js';
import type { Delivery } from './delivery.js';
import type { Line } from './line.js';

/** What an outcome changes in what is known of the endpoint. */
export interface Troubles {
  /** It's the first failure after a success. */
  begins: boolean;
  /** It's one failure too many: the endpoint fails, and not the events. */
  opens: boolean;
}

/** `again`: the delivery has failed before. */
export function countTroubles({ breaker }: Line, { place }: Delivery, { verdict, timeout, attempt }: Outcome, again: boolean): Troubles {
  if (verdict === 'delivered') breaker.reset();
  if (verdict !== 'failed') return { begins: false, opens: false };
  const begins = breaker.untroubled;
  breaker.failedWith({ eventId: eventIdOf(place), timeout, again: again && attempt.status_code !== null });
  const opens = breaker.open;
  // it has done its part: from here on the breaker is a state of the store, which counts for all replicas
  if (opens) breaker.reset();
  return { begins, opens };
}
