import { type Random, seededRandom } from '#testing';

/** Random choices that are the same for the same seed. */
export class Chance {
  /** From 0 to 1. */
  readonly next: Random;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A whole number, both ends included. */
  integer(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)] as T;
  }
}
