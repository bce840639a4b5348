import { TooManyRequests } from '#contracts';

/** Counts what each key has in use, and refuses more than a limit. */
export class LimitPerKey<Key> {
  private readonly used = new Map<Key, number>();
  private sum = 0;

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
    const used = this.used.get(key) ?? 0;
    if (used >= this.limit || this.sum >= this.total) return undefined;
    this.used.set(key, used + 1);
    this.sum++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.sum--;
      const left = this.used.get(key)! - 1;
      if (left > 0) this.used.set(key, left);
      else this.used.delete(key);
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
