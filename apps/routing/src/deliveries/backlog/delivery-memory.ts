import type { UserId } from '#contracts';
import { SumPerKey } from '#limits';
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

/** How often those that wait look whether they still need memory. */
const LOOK_MS = 200;

type Sized = Pick<Parked, 'bytes'>[];

const bytesOf = (parked: Sized): number => parked.reduce((sum, { bytes }) => sum + bytes, 0);

/** Memory for the next deliveries of one backlog. */
export interface Reservation {
  readonly bytes: number;
  /** Whether these deliveries need so much that there may be more of them. */
  isScarce(parked: Sized): boolean;
  /** These deliveries were taken, and each is held until `free`: the rest is free again. */
  keep(parked: Sized): void;
}

/**
 * The memory for parked deliveries. A drainer reserves some before it takes deliveries, because their size is not known, and waits while less is free
 * than one delivery may need. An account has three quarters at most, so that large deliveries that take long do not delay those of others. Of those that wait,
 * accounts with the least memory come first.
 */
export class DeliveryMemory {
  private readonly ofAccount = accountShareOf(MOST_BYTES);
  /** The largest delivery: a small part of the share of an account, so one is always possible. */
  private readonly least: number;
  private readonly reserved = new SumPerKey<UserId>();
  /** In the order of their requests. */
  private waiting: { account: UserId; begin: (reservation: Reservation | undefined) => void }[] = [];

  constructor(maxEventBytes: number) {
    this.least = maxEventBytes + BESIDE_JSON_BYTES;
  }

  /** Undefined if `isOver` before enough is free: the deliveries that the caller still holds may be those for which all wait. */
  reserve(account: UserId, isOver: () => boolean): Promise<Reservation | undefined> {
    const { promise, resolve: begin } = Promise.withResolvers<Reservation | undefined>();
    const request = { account, begin };
    this.waiting.push(request);
    this.serve();
    const looks = setInterval(() => {
      if (!isOver()) return;
      this.waiting = this.waiting.filter((each) => each !== request);
      // without effect if it has been served
      begin(undefined);
    }, LOOK_MS).unref();
    return promise.finally(() => clearInterval(looks));
  }

  /** These deliveries, which were kept for the account, are in memory no longer. */
  free(account: UserId, parked: Sized): void {
    this.reserved.add(account, -bytesOf(parked));
    this.serve();
  }

  private serve(): void {
    while (this.waiting.length > 0 && MOST_BYTES - this.reserved.total >= this.least) {
      const next = this.waiting.reduce((first, each) => (this.reserved.of(each.account) < this.reserved.of(first.account) ? each : first));
      const free = Math.min(MOST_BYTES - this.reserved.total, this.ofAccount - this.reserved.of(next.account));
      // nor do the others have less
      if (free < this.least) return;
      this.waiting.splice(this.waiting.indexOf(next), 1);
      next.begin(this.begin(next.account, Math.min(TAKEN_BYTES, Math.max(this.least, Math.floor(free * PART)))));
    }
  }

  private begin(account: UserId, bytes: number): Reservation {
    this.reserved.add(account, bytes);
    return {
      bytes,
      isScarce: (parked) => 2 * bytesOf(parked) > bytes,
      keep: (parked) => {
        this.reserved.add(account, bytesOf(parked) - bytes);
        this.serve();
      },
    };
  }
}
