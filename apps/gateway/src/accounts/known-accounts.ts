import { LRUCache } from 'lru-cache';
import { Lookups } from '#database';
import type { OpenedAccount } from './account.entity.js';

/** How long a gateway uses what it has read of an account, in ms. */
const KNOWN_MS = 200;
const TIMER_MS = 10;
const MAX_KEYS = 10_000;

/** Resolves when no gateway uses what it has read before. What ends an access waits for it: its response means that no gateway grants it any more. */
export const untilForgotten = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, KNOWN_MS + TIMER_MS));

/** Accounts by the hash (hex) of a key. Every request begins with one, so an account is read a few times per second at most, however many requests it sends. */
export class KnownAccounts {
  private readonly lookups: Lookups<string, OpenedAccount>;
  private readonly known = new LRUCache<string, { account: OpenedAccount; until: number }>({ max: MAX_KEYS });

  constructor(read: (hashes: string[]) => Promise<ReadonlyMap<string, OpenedAccount>>) {
    this.lookups = new Lookups(read);
  }

  /** Undefined if no account has a key with this hash. */
  async get(hash: string): Promise<OpenedAccount | undefined> {
    const now = performance.now();
    const known = this.known.get(hash);
    if (known && now < known.until) return known.account;
    const account = await this.lookups.get(hash);
    // counted from the begin of the lookup: what it has read may be as old
    if (account) this.known.set(hash, { account, until: now + KNOWN_MS });
    return account;
  }
}
