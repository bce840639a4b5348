/** Counts what each key has in use, and refuses more than a limit. */
export class LimitPerKey<Key> {
  private readonly used = new Map<Key, number>();

  /** limit: of one key. */
  constructor(private readonly limit: number) {}

  /** Takes one; undefined if the key already has as many as the limit allows. @returns a function that gives it back; further calls of it do nothing */
  acquire(key: Key): (() => void) | undefined {
    const used = this.used.get(key) ?? 0;
    if (used >= this.limit) return undefined;
    this.used.set(key, used + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = this.used.get(key)! - 1;
      if (left > 0) this.used.set(key, left);
      else this.used.delete(key);
    };
  }
}
