/**
 * Looks up values together: keys that are requested while a lookup is in progress are part of the next one. Under load, one statement serves many
 * callers, and each sees everything that was committed before its call.
 */
export class Lookups<Key, Value> {
  private wanted = new Map<Key, PromiseWithResolvers<Value | undefined>>();
  private looking = false;

  /** load: returns the values of the keys that have one. Its error reaches every caller. */
  constructor(private readonly load: (keys: Key[]) => Promise<ReadonlyMap<Key, Value>>) {}

  /** The value of the key; undefined if it has none. */
  get(key: Key): Promise<Value | undefined> {
    let wanted = this.wanted.get(key);
    if (!wanted) this.wanted.set(key, (wanted = Promise.withResolvers()));
    if (!this.looking) {
      this.looking = true;
      setImmediate(() => void this.look());
    }
    return wanted.promise;
  }

  private async look(): Promise<void> {
    while (this.wanted.size > 0) {
      const { wanted } = this;
      this.wanted = new Map();
      try {
        const found = await this.load([...wanted.keys()]);
        for (const [key, { resolve }] of wanted) resolve(found.get(key));
      } catch (error) {
        for (const { reject } of wanted.values()) reject(error);
      }
    }
    this.looking = false;
  }
}
