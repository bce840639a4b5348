import { Injectable } from '@nestjs/common';
import { TooManyRequests, Unavailable, type UserId } from '#contracts';
import { QueuePerKey } from '#limits';
import { within } from '#service';

/** Changes of one account that proceed at a time: each has a connection to the database, also while it waits for a lock of another one. */
const AT_ONCE = 2;
/** With the wait for a lock that follows, less than a caller waits. Changed credentials may have to be copied to very many sources. */
const WAIT_MS = 4000;

/** Lets the changes of an account that wait for each other in the database wait here instead, without a connection. */
@Injectable()
export class AccountTurns {
  private readonly turns = new QueuePerKey<UserId>(() => AT_ONCE);

  /** A change of one source. Throws TooManyRequests or Unavailable if too many others of the account are before it. */
  take<T>(ownerId: UserId, work: () => Promise<T>): Promise<T> {
    return this.run(ownerId, 1, work);
  }

  /** A change that no other one of the account overlaps. Throws as `take` does. */
  takeAlone<T>(ownerId: UserId, work: () => Promise<T>): Promise<T> {
    return this.run(ownerId, AT_ONCE, work);
  }

  private async run<T>(ownerId: UserId, count: number, work: () => Promise<T>): Promise<T> {
    // in order and together: two changes never have a part each of what they need
    const places = Array.from({ length: count }, () => this.turns.join(ownerId));
    try {
      const turns = places.map((place) => {
        if (!place) throw new TooManyRequests('too many changes of this account are waiting');
        return place.turn;
      });
      await within(WAIT_MS, Promise.all(turns), () => new Unavailable('no turn in time', 'another change of this account takes long'));
      return await work();
    } finally {
      for (const place of places) place?.leave();
    }
  }
}
