import { TooManyRequests } from '#contracts';

/** The place in a queue of one that it has accepted. */
export interface Place {
  /** Resolves when it may begin; never if it leaves before. */
  readonly turn: Promise<void>;
  /** It has ended, or does not wait any longer; further calls do nothing. */
  leave(): void;
}

/** A gateway sends at most this many at a time for an account that is alone. */
const MAX_WAITING_REQUESTS = 64;

interface Queue {
  proceeding: number;
  /** In order. */
  waiting: Set<() => void>;
}

/** Lets as many of each key proceed at a time as a limit allows. Others of the key wait for their turns, in order. */
export class QueuePerKey<Key> {
  private readonly queues = new Map<Key, Queue>();

  /**
   * @param limit how many of one key may proceed now
   * @param maxWaiting how many others of it may wait; the default is for the requests that a service handles for an account
   */
  constructor(
    private readonly limit: () => number,
    private readonly maxWaiting = MAX_WAITING_REQUESTS,
  ) {}

  /** @returns undefined if as many of the key wait as may wait */
  join(key: Key): Place | undefined {
    const queue = this.queueOf(key);
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    const begin = (): void => {
      queue.waiting.delete(begin);
      queue.proceeding++;
      resolve();
    };
    let isIn = true;
    const leave = (): void => {
      if (!isIn) return;
      isIn = false;
      // unless it was waiting
      if (!queue.waiting.delete(begin)) queue.proceeding--;
      this.continue(key, queue);
    };
    if (queue.waiting.size === 0 && queue.proceeding < this.limit()) begin();
    else if (queue.waiting.size < this.maxWaiting) queue.waiting.add(begin);
    else return undefined;
    return { turn, leave };
  }

  /** Works when it is its turn. @throws TooManyRequests with this sentence if as many of the key wait as may wait */
  async run<Result>(key: Key, refusal: string, work: () => Promise<Result>): Promise<Result> {
    const place = this.join(key);
    if (!place) throw new TooManyRequests(refusal);
    try {
      await place.turn;
      return await work();
    } finally {
      place.leave();
    }
  }

  private queueOf(key: Key): Queue {
    let queue = this.queues.get(key);
    if (!queue) this.queues.set(key, (queue = { proceeding: 0, waiting: new Set() }));
    return queue;
  }

  private continue(key: Key, queue: Queue): void {
    for (const begin of queue.waiting) {
      if (queue.proceeding >= this.limit()) return;
      begin();
    }
    if (queue.proceeding === 0) this.queues.delete(key);
  }
}
