import { TooManyRequests } from '#contracts';
import { SumPerKey } from './sum-per-key.js';

/** Counts what each key has in use, and refuses more than a limit. */
export class LimitPerKey<Key> {
  private readonly used = new SumPerKey<Key>();

  /**
   * @param limit of one key
   * @param total of all keys together
   */
  constructor(
    private readonly limit: number,
    private readonly total = Infinity,
  ) {}

  /** Takes one; undefined if the key, or all of them together, already have as many as the limit allows. @returns a function that gives it back; further calls of it do nothing */
  acquire(key: Key): (() => void) | undefined {
    if (this.used.of(key) >= this.limit || this.used.total >= this.total) return undefined;
    this.used.add(key, 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.used.add(key, -1);
    };
  }

  /** Has one in use while it works. @throws TooManyRequests with this sentence if none is left */
  async run<Result>(key: Key, refusal: string, work: () => Promise<Result>): Promise<Result> {
    const release = this.acquire(key);
    if (!release) throw new TooManyRequests(refusal);
    try {
      return await work();
    } finally {
      release();
    }
  }
}
