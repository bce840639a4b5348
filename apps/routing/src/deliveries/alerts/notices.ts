import type { Target } from '../../webhooks/target.js';
import type { Attempt, Delivery } from '../delivery.js';

/** Who is told of deliveries that fail for good. */
export abstract class Notices {
  /** A delivery was given up: its emitter's `$errors` says so, once per webhook and hour. */
  abstract gaveUp(target: Target, delivery: Delivery, last: Attempt | undefined): Promise<void>;
  /** A webhook was switched off: its owner is told. */
  abstract switchedOff(target: Target, why: 'gone' | 'failing'): Promise<void>;
}
