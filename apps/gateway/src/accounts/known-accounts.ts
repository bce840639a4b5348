import { LRUCache } from 'lru-cache';
import { Lookups } from '#database';
import type { OpenedAccount } from './account.entity.js';

/** How long a gateway uses what it has read of an account, in ms. */
const KNOWN_MS = 200;
const TIMER_MS = 10;
const MAX_KEYS = 10_000;

/** Resolves when no gateway uses what it has read before. What ends an access waits for it: its response means that no gateway grants it any more. */
export const untilForgotten = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, KNOWN_MS + TIMER_MS));

/** An account as a gateway has read it. `until`: when it has to be read again, as `performance.now()` counts. */
export type KnownAccount = OpenedAccount & { until: number };

/** Accounts by the hash (hex) of a key. Every request begins with one, so an account is read a few times per second at most, however many requests it sends. */
export class KnownAccounts {
  private readonly lookups: Lookups<string, OpenedAccount>;
  private readonly known = new LRUCache<string, KnownAccount>({ max: MAX_KEYS });

  constructor(read: (hashes: string[]) => Promise<ReadonlyMap<string, OpenedAccount>>) {
    this.lookups = new Lookups(read);
  }

  /** Undefined if no account has a key with this hash. */
  async get(hash: string): Promise<KnownAccount | undefined> {
    const now = performance.now();
    const known = this.known.get(hash);
    if (known && now < known.until) return known;
    const account = await this.lookups.get(hash);
    if (!account) return undefined;
    // counted from the begin of the lookup: what it has read may be as old
    const read = { ...account, until: now + KNOWN_MS };
    this.known.set(hash, read);
    return read;
  }
}
