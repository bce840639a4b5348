import type { Claim, HeldKey, IdempotencyRepository, StoredResponse } from './idempotency.repository.js';

/** In place of IdempotencyRepository; keys and leases do not expire. */
export class IdempotencyInMemory implements Pick<IdempotencyRepository, 'claim' | 'keep' | 'release'> {
  private readonly requests = new Map<string, { held: HeldKey; isFree?: boolean; response?: StoredResponse }>();

  async claim(...[accountId, key, fingerprint]: Parameters<IdempotencyRepository['claim']>): Promise<Claim> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (!first || first.isFree) {
      const held: HeldKey = { accountId, key, fingerprint, claimedAt: '', firstAt: first?.held.firstAt ?? new Date() };
      this.requests.set(`${accountId} ${key}`, { held });
      return { held };
    }
    if (!first.held.fingerprint.equals(fingerprint)) return 'other payload';
    return first.response ? { stored: first.response, first: first.held } : { retryAfterSeconds: 9 };
  }

  async keep({ accountId, key }: HeldKey, response: StoredResponse): Promise<void> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (first) first.response = response;
  }

  async release({ accountId, key }: HeldKey): Promise<void> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (first) first.isFree = true;
  }
}
