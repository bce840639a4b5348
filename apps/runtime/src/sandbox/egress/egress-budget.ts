import { Slots } from './slots.js';

/** Limits of components' connections; times in ms. The first three apply to an account, the next one to a process, the others to one connection. */
export interface EgressLimits {
  /** Concurrent connections. Further ones wait, because refusing them would break a `Promise.all` over a hundred requests */
  connections: number;
  waiting: number;
  perMinute: number;
  /** Refused connections of one process, after which it is ended: each costs the parent as much as it costs the process */
  refusedPerMinute: number;
  /** Time to send the CONNECT request */
  headMs: number;
  /** Time to connect, and the longest wait for a free connection */
  connectMs: number;
  /** Time without a byte in either direction */
  idleMs: number;
  lifeMs: number;
  bytesDown: number;
  bytesUp: number;
}

export const defaultEgressLimits: EgressLimits = {
  connections: 256,
  waiting: 500,
  perMinute: 1200,
  refusedPerMinute: 5000,
  headMs: 5_000,
  connectMs: 10_000,
  idleMs: 60_000,
  lifeMs: 300_000,
  bytesDown: 64 << 20,
  bytesUp: 16 << 20,
};

/** The connections that one account may open. All of its processes share the budget, so a crash does not reset the limit. */
export class EgressBudget {
  private readonly slots: Slots;
  private readonly rate: Rate;
  private held = 0;
  private usedAt = performance.now();

  constructor(private readonly limits: Pick<EgressLimits, 'connections' | 'waiting' | 'perMinute' | 'connectMs'>) {
    this.slots = new Slots(limits.connections);
    this.rate = new Rate(limits.perMinute);
  }

  /** Waits for a free connection. @returns true: call `give` when the connection is closed; false: there are too many */
  async take(): Promise<boolean> {
    this.usedAt = performance.now();
    if (this.slots.waiting >= this.limits.waiting || !this.rate.allows()) return false;
    this.held++;
    const taken = await this.slots.take(this.limits.connectMs);
    if (!taken) this.held--;
    return taken;
  }

  give(): void {
    this.held--;
    this.slots.give();
  }

  /** Whether the budget is unused, so that a new one would be equal. */
  get isFull(): boolean {
    return this.held === 0 && performance.now() - this.usedAt > 60_000;
  }
}

const mostKept = 1000;

/** Budgets by account. */
export class EgressBudgets {
  private readonly budgets = new Map<string, EgressBudget>();

  constructor(private readonly limits: EgressLimits) {}

  of(accountId: string): EgressBudget {
    const known = this.budgets.get(accountId);
    if (known) return known;
    if (this.budgets.size >= mostKept) for (const [id, budget] of this.budgets) if (budget.isFull) this.budgets.delete(id);
    const budget = new EgressBudget(this.limits);
    this.budgets.set(accountId, budget);
    return budget;
  }
}

/** A token bucket: this many per minute on average, and at most this many at once. */
export class Rate {
  private tokens: number;
  private at = performance.now();

  constructor(private readonly perMinute: number) {
    this.tokens = perMinute;
  }

  allows(): boolean {
    const now = performance.now();
    this.tokens = Math.min(this.perMinute, this.tokens + ((now - this.at) * this.perMinute) / 60_000);
    this.at = now;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}
