import type { UserId } from '#contracts';
import { MAX_IDLE_MS } from '#egress';

/** The origins that an account keeps connections to in the time for which an idle one is kept: a service with many customers has a webhook for each. */
export const MAX_ORIGINS = 500;

/**
 * Decides which connections are kept after a delivery. An account can have thousands of webhooks, each on another host or port; if their connections were
 * all kept, they would use up the files that the process can open. Deliveries to further origins take a new connection each.
 */
export class KeptConnections {
  private origins = new Map<UserId, Set<string>>();
  private until = -Infinity;

  /** Whether the connection of a delivery that begins at `now` (ms) stays open after it. */
  keeps(account: UserId, origin: string, now: number): boolean {
    if (now >= this.until) {
      this.origins = new Map();
      this.until = now + MAX_IDLE_MS;
    }
    let origins = this.origins.get(account);
    if (!origins) this.origins.set(account, (origins = new Set()));
    if (origins.size < MAX_ORIGINS) origins.add(origin);
    return origins.has(origin);
  }
}
