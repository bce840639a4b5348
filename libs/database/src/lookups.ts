/**
 * Looks values up together: keys that are asked for while a lookup is under way are looked up by the next one. So under load one statement
 * serves many callers, and each sees what was committed before it asked.
 */
export class Lookups<Key, Value> {
  private wanted = new Map<Key, PromiseWithResolvers<Value | undefined>>();
  private looking = false;

  /** load: the values of those keys that have one. What it throws reaches everyone who asked. */
  constructor(private readonly load: (keys: Key[]) => Promise<ReadonlyMap<Key, Value>>) {}

  /** The value of the key; undefined when there is none. */
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
