/** How much each key has in use, such as bytes or pieces of work. A key that has nothing needs no memory. */
export class SumPerKey<Key> {
  private readonly sums = new Map<Key, number>();
  private all = 0;

  /** Of all keys together. */
  get total(): number {
    return this.all;
  }

  /** Of every key that has something. */
  get perKey(): ReadonlyMap<Key, number> {
    return this.sums;
  }

  of(key: Key): number {
    return this.sums.get(key) ?? 0;
  }

  /** Whether all keys together have more than `most`, and this one more than an equal share of that. */
  exceedsShare(key: Key, most: number): boolean {
    return this.all > most && this.of(key) > most / this.sums.size;
  }

  /** @returns the sum of the key */
  add(key: Key, change: number): number {
    this.all += change;
    const sum = this.of(key) + change;
    if (sum > 0) this.sums.set(key, sum);
    else this.sums.delete(key);
    return sum;
  }
}
