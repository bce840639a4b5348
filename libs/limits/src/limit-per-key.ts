import { TooManyRequests } from '#contracts';
import { SumPerKey } from './sum-per-key.js';

/** The part of the total that is kept for keys that have none in use. */
const KEPT = 1 / 8;

/**
 * Counts what each key has in use, and refuses more than a limit.
 *
 * A few keys cannot exhaust the total. An eighth of it is kept for keys that have none in use. Of the rest, a key takes one more only while it has fewer than
 * are left: if all want as many as possible, they have about equal shares, and the fewer the more keys there are.
 */
export class LimitPerKey<Key> {
  private readonly used = new SumPerKey<Key>();

  /**
   * @param limit of one key. A key alone reaches it if the total is at least 2.3 times as much
   * @param total of all keys together
   */
  constructor(
    private readonly limit: number,
    private readonly total = Infinity,
  ) {}

  /** Takes one; undefined if the key may not have more. @returns a function that gives it back; further calls of it do nothing */
  acquire(key: Key): (() => void) | undefined {
    if (!this.admits(key)) return undefined;
    this.used.add(key, 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.used.add(key, -1);
    };
  }

  /** Has one in use while it works. @throws TooManyRequests with this sentence if the key may not have more */
  async run<Result>(key: Key, refusal: string, work: () => Promise<Result>): Promise<Result> {
    const release = this.acquire(key);
    if (!release) throw new TooManyRequests(refusal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  private admits(key: Key): boolean {
    const own = this.used.of(key);
    if (own === 0) return this.limit > 0 && this.used.total < this.total;
    return own < this.limit && own < this.total * (1 - KEPT) - this.used.total;
  }
}
