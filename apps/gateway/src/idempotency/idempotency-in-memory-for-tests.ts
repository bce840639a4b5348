import type { Claim, IdempotencyRepository, StoredResponse } from './idempotency.repository.js';

/** In place of IdempotencyRepository; keys do not expire. */
export class IdempotencyInMemory implements Pick<IdempotencyRepository, 'claim' | 'keep' | 'release'> {
  private readonly requests = new Map<string, { fingerprint: Buffer; response?: StoredResponse }>();

  async claim(accountId: string, key: string, fingerprint: Buffer): Promise<Claim> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (!first) {
      this.requests.set(`${accountId} ${key}`, { fingerprint });
      return 'claimed';
    }
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    return first.response ?? 'in flight';
  }

  async keep(accountId: string, key: string, response: StoredResponse): Promise<void> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (first) first.response = response;
  }

  async release(accountId: string, key: string): Promise<void> {
    this.requests.delete(`${accountId} ${key}`);
  }
}
