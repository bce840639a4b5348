import type { WebhookId } from '#contracts';
import type { Attempt, Delivery } from '../delivery.js';
import type { Mode, TargetRow } from '../../webhooks/target.js';

/** A delivery in the store. */
export interface Parked {
  delivery: Delivery;
  /** Not attempted yet. Fresh deliveries of an emitter are attempted in order. */
  fresh: boolean;
  /** The newest attempts, oldest first. */
  attempts: Attempt[];
  /** The number of attempts in the retry schedule. */
  tries: number;
}

/** The outcome of an attempt, as it is stored. `pauseMs` null: the delivery is given up. */
export type Settlement =
  | { delivery: Delivery; delivered: true; attempts: Attempt[] }
  | { delivery: Delivery; delivered: false; attempts: Attempt[]; tries: number; pauseMs: number | null };

/** A lease of a webhook's backlog. */
export interface Claim {
  webhookId: WebhookId;
  leaseId: string;
}

/** When a backlog is due again. */
export type NextLook =
  | { when: 'next due' }
  | { when: 'later'; inMs: number }
  /** The receiver is failing: one delivery is attempted then. */
  | { when: 'probe'; inMs: number; failedProbes: number };

/**
 * Stores deliveries that could not be made at once, and the state of receivers that all replicas share. Each method is one transaction. An abstract
 * class, because an interface cannot be an injection token.
 */
export abstract class DeliveryStore {
  abstract findTargets(ids: WebhookId[]): Promise<TargetRow[]>;

  /** Parks unattempted deliveries to a webhook if it is spilled. Returns its mode: only `spilled` means parked. */
  abstract parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'>;
  /** Parks a delivery whose first attempt is in flight and takes long, and spills its webhook. */
  abstract parkInFlight(delivery: Delivery, leaseMs: number): Promise<void>;
  /** Parks a delivery whose first attempt has failed. A delivery that is already parked is not changed. */
  abstract parkFailed(failed: Settlement & { delivered: false }): Promise<void>;
  /** From now on new deliveries to the webhook are parked. With `probeInMs` its breaker is open: the next attempt is a probe. */
  abstract spill(webhookId: WebhookId, breaker: { probeInMs: number } | null): Promise<void>;
  /** Stores the outcomes of parked deliveries to one webhook. Deleted deliveries are skipped. */
  abstract settle(webhookId: WebhookId, settlements: Settlement[]): Promise<void>;
  /** The receiver has begun to fail, unless it is failing already. */
  abstract markFailing(webhookId: WebhookId): Promise<void>;
  /** Disables the webhook and gives up its parked deliveries; with `ifFailingForMs` only if it has been failing for that long. Returns whether it did. */
  abstract disable(webhookId: WebhookId, ifFailingForMs?: number): Promise<boolean>;

  /** Leases backlogs with due deliveries. */
  abstract claim(limit: number, leaseId: string, leaseMs: number): Promise<Claim[]>;
  /** Extends the lease. Undefined if it is lost. */
  abstract renew(claim: Claim, leaseMs: number): Promise<{ failedProbes: number | null } | undefined>;
  /**
   * The deliveries to attempt now, those that have waited longest first: fresh ones, in order, and retries that are due.
   * `inFlight`: a first attempt is in progress elsewhere and must end before any other begins.
   */
  abstract take(webhookId: WebhookId, limit: number): Promise<{ parked: Parked[]; inFlight: boolean }>;
  /** One delivery with which to probe a failing receiver: a different one each time. */
  abstract takeProbe(webhookId: WebhookId): Promise<Parked | undefined>;
  /** A probe has succeeded: the other deliveries may follow. */
  abstract closeBreaker(claim: Claim): Promise<void>;
  /** For a moment new deliveries wait, so that the end of the backlog can be reached. */
  abstract startClosing(claim: Claim, forMs: number): Promise<void>;
  /** Ends the spilled mode and the lease if no fresh delivery is parked. */
  abstract finishClosing(claim: Claim): Promise<'direct' | 'more'>;
  /** Ends the lease. */
  abstract release(claim: Claim, next: NextLook): Promise<void>;
}
