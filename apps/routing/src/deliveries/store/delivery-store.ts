import type { EmitterId, UserId, WebhookId } from '#contracts';
import type { EventPlace } from '#events';
import type { AccountRecord } from '#outbox';
import type { Attempt, Delivery } from '../delivery.js';
import type { Attempted, Mode, TargetRow } from '../../webhooks/webhooks.repository.js';

/** A delivery in the store. */
export interface Parked {
  delivery: Delivery;
  /** Not attempted yet. Fresh deliveries of an emitter are attempted in order. */
  fresh: boolean;
  /** The newest attempts, oldest first. */
  attempts: Attempt[];
  /** The number of attempts in the retry schedule. */
  tries: number;
  /** Since the first of them, in ms; 0 if there is none. */
  sinceFirstMs: number;
  /** Until its next attempt in the retry schedule, in ms; not positive if it is due. Positive for a probe, and if a user has requested an earlier attempt. */
  dueInMs: number;
  /** Changes when a user requests an attempt. */
  revision: string;
  /** In memory, at most. */
  bytes: number;
}

/** Deliveries to attempt now. */
export interface Taken {
  parked: Parked[];
  /** A first attempt is in progress elsewhere, for which other deliveries may wait. False if as many as wanted were taken. */
  inFlight: boolean;
}

/** Deliveries not to take: those at these places, and fresh ones of these emitters. */
export interface Except {
  places: EventPlace[];
  emitters: EmitterId[];
}

/** Which deliveries to take. */
export interface TakeOptions {
  /** At most this number of bytes in memory, but at least one delivery. */
  bytes?: number;
  except?: Except;
}

/** The outcome of an attempt, as it is stored. `pauseMs` null: the delivery is given up. `revision`: that of the parked delivery when it was taken. */
export type Settlement =
  | { delivery: Delivery; delivered: true; attempts: Attempt[] }
  | { delivery: Delivery; delivered: false; attempts: Attempt[]; tries: number; pauseMs: number | null; revision?: string };

export type Failed = Settlement & { delivered: false };

/** Returns the report about deliveries that are given up, if there is one. It is published, unless one about the webhook was published within the last hour. */
export type ReportOf = (givenUp: Failed[]) => AccountRecord | undefined;

export interface SettleOptions {
  leaseId?: string;
  report?: ReportOf;
}

/** A lease of a webhook's backlog. */
export interface Claim {
  webhookId: WebhookId;
  ownerId: UserId;
  leaseId: string;
  /** How often the backlog had been woken when it was last read: a wake-up after that must not be overwritten. */
  wakes: number;
}

/** How many backlogs of one account a replica leases at a time, and how many it has. */
export interface Shares {
  most: number;
  taken: ReadonlyMap<UserId, number>;
}

/** The state of a leased backlog. */
export interface Renewed {
  /** null: its breaker is closed. */
  failedProbes: number | null;
  wakes: number;
}

/** When a backlog is due again. */
export type NextLook =
  | { when: 'next due' }
  /** As another replica has set it. */
  | { when: 'unchanged' }
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
  /** Parks a delivery whose first attempt is in flight and takes long, and spills its webhook. Returns its revision, unless it was parked before. */
  abstract parkInFlight(delivery: Delivery, leaseMs: number): Promise<string | undefined>;
  /** Parks a delivery whose first attempt has failed. A delivery that is already parked is not changed. Returns the failure if the delivery is given up. */
  abstract parkFailed(failed: Failed, report?: ReportOf): Promise<Failed[]>;
  /** From now on new deliveries to the webhook are parked. */
  abstract spill(webhookId: WebhookId): Promise<void>;
  /** The same for a receiver that is failing: the next attempt is a probe. False, and nothing happens, if its webhook has another URL by now. */
  abstract openBreaker(receiver: Attempted, probeInMs: number): Promise<boolean>;
  /**
   * Stores the outcomes of parked deliveries to one webhook. Deleted deliveries are skipped; those that were given up meanwhile stay so. Failures count
   * only while the lease of the backlog holds: otherwise another replica may have scheduled the deliveries. Without a lease, only those of first attempts
   * count, unless another replica has made the attempt meanwhile. A failure of a delivery that a user has requested since it was taken is only listed:
   * the delivery stays due, with the retry schedule that the request has given it. Returns the failures after which the delivery is given up.
   */
  abstract settle(webhookId: WebhookId, settlements: Settlement[], options?: SettleOptions): Promise<Failed[]>;
  /** The receiver has failed: it begins to fail unless it did so within `pauseMs` before. Nothing happens if its webhook has another URL by now. */
  abstract markFailing(receiver: Attempted, pauseMs: number): Promise<void>;
  /**
   * Disables the webhook, and makes its backlog due, unless it has another URL by now; with `ifFailingForMs` only if it has been failing for that long. Returns
   * whether it did; then `reports` are published.
   */
  abstract disable(receiver: Attempted, reports: AccountRecord[], ifFailingForMs?: number): Promise<boolean>;
  /** Gives up a batch of the deliveries that wait for a disabled webhook. Returns how many: 0 if none is left, or it was switched on meanwhile. */
  abstract giveUp(webhookId: WebhookId): Promise<number>;

  /** How long until the next backlog is due, in ms, not positive if it is; null or more than LONGEST_MS if none is due before the next look. */
  abstract msToNext(): Promise<number | null>;
  /** @param notify receives in how many ms a backlog is due that this process has woken */
  abstract listen(notify: (inMs: number) => void): void;
  /** Leases backlogs with due deliveries: those of accounts that have the fewest first, and of each account those that have been due for longest. */
  abstract claim(limit: number, leaseId: string, leaseMs: number, shares: Shares): Promise<Claim[]>;
  /** Extends the lease. Undefined if it is lost. */
  abstract renew(claim: Claim, leaseMs: number): Promise<Renewed | undefined>;
  /**
   * The deliveries to attempt now, those that have waited longest first: fresh ones, in order, and retries that are due. Fresh ones of an emitter whose first
   * attempt is in progress elsewhere wait for its end.
   */
  abstract take(webhookId: WebhookId, limit: number, options?: TakeOptions): Promise<Taken>;
  /** Those of the webhooks from which `take` would take deliveries now. */
  abstract findTakeable(backlogs: { webhookId: WebhookId; except: Except }[]): Promise<ReadonlySet<WebhookId>>;
  /**
   * One delivery with which to probe a failing receiver: one whose retry a user has requested, or else a fresh one, or else one that is due, or else a
   * different one each time, because an event that the receiver rejects must not be the only probe. Returns at most one. A fresh one waits for attempts in progress elsewhere, as in `take`.
   */
  abstract takeProbe(webhookId: WebhookId, failedProbes: number): Promise<Taken>;
  /** A probe has succeeded: the other deliveries may follow. */
  abstract closeBreaker(claim: Claim): Promise<void>;
  /** For a moment new deliveries wait, so that the end of the backlog can be reached. */
  abstract startClosing(claim: Claim, forMs: number): Promise<void>;
  /** Ends the spilled mode and the lease if no fresh delivery is parked. `restMs`: as for `release`. */
  abstract finishClosing(claim: Claim, restMs?: number): Promise<'direct' | 'more'>;
  /**
   * Ends the lease. A backlog that was woken since `claim` was read is due at once, whatever `next` is.
   *
   * @param restMs nobody leases the backlog for this long, whatever arrives
   */
  abstract release(claim: Claim, next: NextLook, restMs?: number): Promise<void>;
}
