import { createServer, type Server, type Socket } from 'node:net';
import type { AddressGuard } from '#egress';
import { type EgressBudget, type EgressLimits, Rate } from './egress-budget.js';
import { Tunnel, unbuffered } from './tunnel.js';

const mostRefusing = 50;

export interface EgressCounts {
  connections: number;
  refused: number;
  bytesUp: number;
  bytesDown: number;
}

/**
 * The only way out of one runner process: a proxy on a separate unix socket, so that no token is needed to identify the process. It forwards bytes; TLS
 * is between the component and the server. Both ends may be hostile, so nothing here throws into an event handler.
 */
export class EgressProxy {
  readonly counts: EgressCounts = { connections: 0, refused: 0, bytesUp: 0, bytesDown: 0 };
  /** Resolves when the process has been refused too many connections. */
  readonly flooded: Promise<void>;
  private flood!: () => void;
  private readonly refusals: Rate;
  private readonly server: Server;
  private readonly open = new Set<Socket>();
  private refusing = 0;
  /** null: the process has no account yet, so no component runs in it */
  private budget: EgressBudget | null = null;

  private constructor(
    private readonly guard: Pick<AddressGuard, 'resolve'>,
    private readonly limits: EgressLimits,
  ) {
    this.flooded = new Promise((resolve) => (this.flood = resolve));
    this.refusals = new Rate(limits.refusedPerMinute);
    this.server = createServer({ allowHalfOpen: true, pauseOnConnect: true, ...unbuffered }, (client) => void this.accept(client));
    this.server.on('error', () => {});
  }

  static async listen(path: string, guard: Pick<AddressGuard, 'resolve'>, limits: EgressLimits): Promise<EgressProxy> {
    const proxy = new EgressProxy(guard, limits);
    await new Promise<void>((resolve, reject) => {
      proxy.server.once('error', reject);
      proxy.server.listen(path, resolve);
    });
    return proxy;
  }

  /** Counts connections against this budget from now on. */
  charge(budget: EgressBudget): void {
    this.budget = budget;
  }

  close(): void {
    this.server.close();
    for (const client of this.open) client.destroy();
  }

  /** Sends the reason, unless too many refusals are in progress: each waits for its request and occupies a file descriptor. */
  private async refuse(tunnel: Tunnel): Promise<void> {
    if (!this.refusals.allows()) this.flood();
    if (this.refusing >= mostRefusing) return tunnel.refuse('EMFILE', 'too many connections');
    this.refusing++;
    await tunnel.refuseRequest('EMFILE', 'too many connections');
    this.refusing--;
  }

  private async accept(client: Socket): Promise<void> {
    this.open.add(client);
    client.on('error', () => {});
    client.on('close', () => this.open.delete(client));
    const tunnel = new Tunnel(client, this.guard, this.limits, this.counts);
    const { budget } = this;
    if (!budget || !(await budget.take())) return this.refuse(tunnel);
    if (!client.destroyed) await tunnel.run(budget);
    budget.give();
  }
}
