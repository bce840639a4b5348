import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { networkOf } from './connection-limits.js';

/** A network may guess as often without a delay. Large, because a proxy is one address. */
const BURST = 100;
const PER_SECOND = 100;
const LONGEST_MS = 1000;
const MAX_NETWORKS = 10_000;

/**
 * Delays the responses to guesses of keys, by the network that they come from. A connection has one request in progress at a time (`handleInOrder`), so
 * a client guesses at a limited pace, and does not occupy the process. Requests with a key that exists are never delayed.
 */
export class GuessDelay {
  /** The time until which the guesses of a network are paid for, in ms. */
  private readonly paid = new LRUCache<string, number>({ max: MAX_NETWORKS });

  /** Resolves when the response to a guess may be sent. */
  async pass(address: string | undefined): Promise<void> {
    const ms = this.charge(networkOf(address ?? ''), performance.now());
    if (ms > 0) await sleep(ms);
  }

  /** Counts a guess; returns how long its response has to wait, in ms. */
  charge(network: string, now: number): number {
    const interval = 1000 / PER_SECOND;
    const paid = Math.max(this.paid.get(network) ?? -Infinity, now - BURST * interval) + interval;
    const ms = Math.min(paid - now, LONGEST_MS);
    this.paid.set(network, now + ms);
    return Math.max(0, ms);
  }
}
