import type { Claim, IdempotencyRepository, StoredAnswer } from './idempotency.repository.js';

/** In place of IdempotencyRepository; keys do not expire. */
export class IdempotencyInMemory implements Pick<IdempotencyRepository, 'claim' | 'keep' | 'release'> {
  private readonly requests = new Map<string, { fingerprint: Buffer; answer?: StoredAnswer }>();

  async claim(accountId: string, key: string, fingerprint: Buffer): Promise<Claim> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (!first) {
      this.requests.set(`${accountId} ${key}`, { fingerprint });
      return 'claimed';
    }
    if (!first.fingerprint.equals(fingerprint)) return 'other payload';
    return first.answer ?? 'in flight';
  }

  async keep(accountId: string, key: string, answer: StoredAnswer): Promise<void> {
    const first = this.requests.get(`${accountId} ${key}`);
    if (first) first.answer = answer;
  }

  async release(accountId: string, key: string): Promise<void> {
    this.requests.delete(`${accountId} ${key}`);
  }
}
