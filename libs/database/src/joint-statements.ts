import { isTransient } from './database-errors.js';

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

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Writes items together: items that arrive while a write is in progress share the next one, so under load one statement serves many callers. If a
 * shared write fails because of one of its items, each is written separately, and only the caller of that item gets the error.
 */
export class JointWrites<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private writing = false;

  /** write: returns the results of the items, in their order. most: the maximum number of items per write. */
  constructor(
    private readonly write: (items: Item[]) => Promise<Result[]>,
    private readonly most: number,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (this.writing) return;
      this.writing = true;
      setImmediate(() => void this.work());
    });
  }

  private async work(): Promise<void> {
    while (this.waiting.length > 0) await this.writeAll(this.waiting.splice(0, this.most));
    this.writing = false;
  }

  private async writeAll(shared: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.write(shared.map(({ item }) => item));
      for (const [index, { resolve }] of shared.entries()) resolve(results[index] as Result);
    } catch (error) {
      if (shared.length > 1 && !isTransient(error)) for (const each of shared) await this.writeAll([each]);
      else for (const { reject } of shared) reject(error);
    }
  }
}
