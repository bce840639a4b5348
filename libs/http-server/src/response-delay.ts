import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { networkOf } from './connection-limits.js';

/** The units of responses without a delay. Large, because a proxy is one address. */
const BURST = 100;
const PER_SECOND = 100;
const LONGEST_MS = 1000;
const MAX_KEYS = 10_000;

/**
 * Delays responses that refuse a request, or need no account, by who causes them. A connection has one request in progress at a time (`handleInOrder`), so a
 * client that repeats such requests at once proceeds at a limited pace, and does not occupy the process.
 */
export class ResponseDelay {
  /** The time until which the responses of a key are paid for, in ms. */
  private readonly paid = new LRUCache<string, number>({ max: MAX_KEYS });

  /** Resolves when the response may be sent. Most cost one unit. */
  async pass(key: string, units = 1): Promise<void> {
    const ms = this.charge(key, performance.now(), units);
    if (ms > 0) await sleep(ms);
  }

  /** Counts a response; returns how long it has to wait, in ms. */
  charge(key: string, now: number, units = 1): number {
    const interval = 1000 / PER_SECOND;
    const paid = Math.max(this.paid.get(key) ?? -Infinity, now - BURST * interval) + units * interval;
    const ms = Math.min(paid - now, LONGEST_MS);
    this.paid.set(key, now + ms);
    return Math.max(0, ms);
  }
}

/** The same for guesses of keys, and for other requests without an account, by their network. The caller leaves out requests with a key that exists. */
export class GuessDelay extends ResponseDelay {
  /** @param address of the client */
  override pass(address: string | undefined, units?: number): Promise<void> {
    return super.pass(networkOf(address ?? ''), units);
  }
}
