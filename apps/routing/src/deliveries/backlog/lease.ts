import type { Claim, DeliveryStore, Renewed } from '../store/delivery-store.js';

export const LEASE_MS = 30_000;
const RENEW_MS = 10_000;

/** The lease of a backlog, as far as this process knows: it renews it until it ends, and notices when it was too late to do so. */
export class Lease {
  private readonly timer = setInterval(() => void this.renew().catch(() => undefined), RENEW_MS);
  private renewedAt = -Infinity;
  private lost = false;

  constructor(
    private readonly store: DeliveryStore,
    private readonly claim: Claim,
  ) {}

  /** False if another replica may own the backlog: the lease is lost, or this process stood still until the lease had expired. */
  get holds(): boolean {
    return !this.lost && performance.now() - this.renewedAt < LEASE_MS;
  }

  /** Returns the state of the backlog; undefined if the lease is lost. */
  async renew(): Promise<Renewed | undefined> {
    // before the statement: this process may stand still until the response is read
    const now = performance.now();
    const renewed = await this.store.renew(this.claim, LEASE_MS);
    if (renewed) this.renewedAt = Math.max(this.renewedAt, now);
    else this.lost = true;
    return renewed;
  }

  end(): void {
    clearInterval(this.timer);
  }
}
