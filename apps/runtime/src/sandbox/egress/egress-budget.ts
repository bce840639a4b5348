import { Slots } from './slots.js';

/** What connections of components may use; times in ms. The first three are of an account, the others of a connection. */
export interface EgressLimits {
  /** Connections at a time. More of them wait: refusing would break a `Promise.all` over a hundred requests */
  connections: number;
  waiting: number;
  perMinute: number;
  /** To send the CONNECT request */
  headMs: number;
  /** To be connected, and the longest wait in line */
  connectMs: number;
  /** Without a byte in either direction */
  idleMs: number;
  lifeMs: number;
  bytesDown: number;
  bytesUp: number;
}

export const defaultEgressLimits: EgressLimits = {
  connections: 256,
  waiting: 500,
  perMinute: 1200,
  headMs: 5_000,
  connectMs: 10_000,
  idleMs: 60_000,
  lifeMs: 300_000,
  bytesDown: 64 << 20,
  bytesUp: 16 << 20,
};

/** The connections that one account may open, counted over all of its processes: a crash does not reset the limit. */
export class EgressBudget {
  private readonly slots: Slots;
  private readonly rate: Rate;
  private held = 0;
  private usedAt = performance.now();

  constructor(private readonly limits: Pick<EgressLimits, 'connections' | 'waiting' | 'perMinute' | 'connectMs'>) {
    this.slots = new Slots(limits.connections);
    this.rate = new Rate(limits.perMinute);
  }

  /** Waits for a free connection. @returns false: there are too many; true: call `give` when the connection is closed */
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

  /** Whether a new budget would be the same. */
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
class Rate {
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
