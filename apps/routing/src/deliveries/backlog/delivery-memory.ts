import type { UserId } from '#contracts';
import { accountShareOf } from '../../routing.config.js';
import type { Parked } from '../store/delivery-store.js';

/** Of the parked deliveries in memory, over all backlogs that a process drains. */
export const MOST_BYTES = 64 * 1024 * 1024;
/** Taken from one backlog at a time. */
const TAKEN_BYTES = 8 * 1024 * 1024;
/** The share of what is free that one backlog gets: the less is left, the more backlogs share it. */
const PART = 1 / 8;

/** The context and the attempts of almost any delivery. */
const BESIDE_JSON_BYTES = 64 * 1024;

/** Deliveries with their sizes. */
type Sized = Pick<Parked, 'bytes'>[];

const bytesOf = (parked: Sized): number => parked.reduce((sum, { bytes }) => sum + bytes, 0);

/** Memory for the deliveries of one backlog. */
export interface Reservation {
  readonly bytes: number;
  /** Whether these deliveries need so much that there may be more of them. */
  isScarce(parked: Sized): boolean;
  /** These deliveries were taken: the rest is free again. */
  keep(parked: Sized): void;
  end(): void;
}

/**
 * The memory for parked deliveries. A drainer reserves some before it takes deliveries, because their size is not known, and waits while less is free
 * than one delivery may need. An account has three quarters at most, so that large deliveries that take long do not delay those of others.
 */
export class DeliveryMemory {
  private readonly ofAccount = accountShareOf(MOST_BYTES);
  /** The largest delivery: a small part of the share of an account, so one is always possible. */
  private readonly least: number;
  private reserved = 0;
  private readonly accounts = new Map<UserId, number>();
  /** In the order of their requests. */
  private waiting: { account: UserId; begin: (reservation: Reservation) => void }[] = [];

  constructor(maxEventBytes: number) {
    this.least = maxEventBytes + BESIDE_JSON_BYTES;
  }

  reserve(account: UserId): Promise<Reservation> {
    return new Promise((begin) => {
      this.waiting.push({ account, begin });
      this.serve();
    });
  }

  private serve(): void {
    this.waiting = this.waiting.filter(({ account, begin }) => {
      const free = Math.min(MOST_BYTES - this.reserved, this.ofAccount - (this.accounts.get(account) ?? 0));
      if (free < this.least) return true;
      begin(this.begin(account, Math.min(TAKEN_BYTES, Math.max(this.least, Math.floor(free * PART)))));
      return false;
    });
  }

  private begin(account: UserId, bytes: number): Reservation {
    let own = 0;
    const set = (changed: number) => {
      this.add(account, changed - own);
      own = changed;
    };
    set(bytes);
    const shrink = (changed: number) => {
      set(changed);
      this.serve();
    };
    return {
      bytes,
      isScarce: (parked) => 2 * bytesOf(parked) > bytes,
      keep: (parked) => shrink(bytesOf(parked)),
      end: () => shrink(0),
    };
  }

  private add(account: UserId, bytes: number): void {
    this.reserved += bytes;
    const own = (this.accounts.get(account) ?? 0) + bytes;
    if (own === 0) this.accounts.delete(account);
    else this.accounts.set(account, own);
  }
}
