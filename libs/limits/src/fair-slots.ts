import { SumPerKey } from './sum-per-key.js';

/** Thrown when the account's queue, or the whole queue, is full. */
export class TooMuchWaiting extends Error {
  override readonly name = 'TooMuchWaiting';
}

/** Thrown instead of starting work whose caller has given up. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

export interface FairSlotsLimits {
  atATime: number;
  atATimePerAccount: number;
  waitingPerAccount: number;
  /** Of all accounts. */
  waiting: number;
}

interface Waiter {
  begin(): void;
  refuse(error: Error): void;
}

/**
 * Limits how much work runs at a time, in total and per account. Accounts take turns, so the queue of one account never delays another's work.
 * When the whole queue is full, the newest entry of the longest line is refused.
 */
export class FairSlots {
  private readonly running = new SumPerKey<string>();
  /** In the order of their turns. */
  private readonly lines = new Map<string, Set<Waiter>>();

  constructor(private readonly limits: FairSlotsLimits) {}

  get waiting(): number {
    return [...this.lines.values()].reduce((sum, line) => sum + line.size, 0);
  }

  /**
   * @param until when the caller stops waiting, in ms since the epoch, or Infinity; work that has not started by then is never started
   * @throws TooMuchWaiting, CallerGone, and what the work throws
   */
  async use<T>(account: string, until: number, work: () => Promise<T>): Promise<T> {
    await this.take(account, until);
    try {
      return await work();
    } finally {
      this.running.add(account, -1);
      this.beginNext();
    }
  }

  private take(account: string, until: number): Promise<void> {
    if (until <= Date.now()) return Promise.reject(new CallerGone('the caller has timed out'));
    const line = this.lines.get(account) ?? new Set<Waiter>();
    if (line.size >= this.limits.waitingPerAccount) return Promise.reject(tooMuch());
    return new Promise((resolve, reject) => {
      const giveUp = (): void => waiter.refuse(new CallerGone('the caller has timed out'));
      const timer = until === Infinity ? undefined : setTimeout(giveUp, until - Date.now());
      const leave = (): void => {
        clearTimeout(timer);
        line.delete(waiter);
        if (line.size === 0) this.lines.delete(account);
      };
      const waiter: Waiter = {
        begin: () => (leave(), resolve()),
        refuse: (error) => (leave(), reject(error)),
      };
      line.add(waiter);
      this.lines.set(account, line);
      this.beginNext();
      if (this.waiting > this.limits.waiting) this.shortenLongest();
    });
  }

  private beginNext(): void {
    for (const [account, line] of [...this.lines]) {
      if (this.running.total >= this.limits.atATime) return;
      if (this.running.of(account) >= this.limits.atATimePerAccount) continue;
      const [next] = line;
      this.running.add(account, 1);
      // its next turn comes after those of the other accounts
      this.lines.delete(account);
      this.lines.set(account, line);
      next!.begin();
    }
  }

  private shortenLongest(): void {
    const longest = [...this.lines.values()].reduce((a, b) => (b.size > a.size ? b : a));
    [...longest].at(-1)!.refuse(tooMuch());
  }
}

const tooMuch = (): TooMuchWaiting => new TooMuchWaiting('too much is waiting; try again in a moment');
