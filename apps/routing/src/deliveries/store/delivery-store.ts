import type { WebhookId } from '#contracts';
import type { Attempt, Delivery } from '../delivery.js';
import type { Mode, TargetRow } from '../../webhooks/target.js';

/** A delivery in the store. */
export interface Parked {
  delivery: Delivery;
  /** Not attempted yet: those of an emitter are attempted in order. */
  fresh: boolean;
  /** The newest attempts, the oldest of them first. */
  attempts: Attempt[];
  /** How far it is in the retry schedule. */
  tries: number;
}

/** What became of an attempt, as it's written down. `pauseMs` null: it's given up. */
export type Settlement =
  | { delivery: Delivery; delivered: true; attempts: Attempt[] }
  | { delivery: Delivery; delivered: false; attempts: Attempt[]; tries: number; pauseMs: number | null };

/** A webhook's backlog that is ours until the lease ends. */
export interface Claim {
  webhookId: WebhookId;
  leaseId: string;
}

/** When a backlog is to be looked at again. */
export type NextLook =
  | { when: 'next due' }
  | { when: 'later'; inMs: number }
  /** The endpoint fails: one delivery is tried then. */
  | { when: 'probe'; inMs: number; failedProbes: number };

/**
 * Where deliveries are kept that couldn't be made at once, and the states of endpoints that all replicas share. Each
 * method is one transaction. An abstract class, because an interface can't be an injection token.
 */
export abstract class DeliveryStore {
  abstract findTargets(ids: WebhookId[]): Promise<TargetRow[]>;

  /** Parks deliveries of one webhook that were not attempted, if it's spilled. Answers its mode: only `spilled` means parked. */
  abstract parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'>;
  /** Parks a delivery whose first attempt is under way and takes long, and spills its webhook. */
  abstract parkInFlight(delivery: Delivery, leaseMs: number): Promise<void>;
  /** Parks a delivery whose first attempt has failed. One that is parked already is left as it is. */
  abstract parkFailed(failed: Settlement & { delivered: false }): Promise<void>;
  /** From now on what arrives for the webhook is parked. With `probeInMs` its breaker is open: then the next attempt is a probe. */
  abstract spill(webhookId: WebhookId, breaker: { probeInMs: number } | null): Promise<void>;
  /** Writes down what became of parked deliveries of one webhook. Those that are gone stay so. */
  abstract settle(webhookId: WebhookId, settlements: Settlement[]): Promise<void>;
  /** The endpoint has begun to fail, unless it fails already. */
  abstract markFailing(webhookId: WebhookId): Promise<void>;
  /** Switches the webhook off and gives up what is parked; with `ifFailingForMs` only when it has failed for so long. Whether it did. */
  abstract disable(webhookId: WebhookId, ifFailingForMs?: number): Promise<boolean>;

  /** Leases of backlogs of which something is due. */
  abstract claim(limit: number, leaseId: string, leaseMs: number): Promise<Claim[]>;
  /** Keeps the lease. Undefined when it's lost. */
  abstract renew(claim: Claim, leaseMs: number): Promise<{ failedProbes: number | null } | undefined>;
  /**
   * What is to be attempted now, what has waited longest first: fresh ones, in order, and retries that are due.
   * `inFlight`: a first attempt is under way elsewhere, and has to end before anything else.
   */
  abstract take(webhookId: WebhookId, limit: number): Promise<{ parked: Parked[]; inFlight: boolean }>;
  /** One delivery to try a failing endpoint with: another one each time. */
  abstract takeProbe(webhookId: WebhookId): Promise<Parked | undefined>;
  /** A probe has succeeded: the rest may follow. */
  abstract closeBreaker(claim: Claim): Promise<void>;
  /** For a moment what arrives waits, so that the end of the backlog can be reached. */
  abstract startClosing(claim: Claim, forMs: number): Promise<void>;
  /** Ends the spilling, and the lease, when nothing fresh is parked any more. */
  abstract finishClosing(claim: Claim): Promise<'direct' | 'more'>;
  /** Ends the lease. */
  abstract release(claim: Claim, next: NextLook): Promise<void>;
}
