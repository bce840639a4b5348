import { isOfData } from './database.js';

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Writes items together: items that arrive while a write is in progress share the next one, so under load one statement serves many callers. If the
 * database refuses the data of a shared write, each item is written separately, and only the caller of the refused item gets the error.
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
      if (shared.length > 1 && isOfData(error)) for (const each of shared) await this.writeAll([each]);
      else for (const { reject } of shared) reject(error);
    }
  }
}
