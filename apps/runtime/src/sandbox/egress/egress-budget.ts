import { Slots } from './slots.js';
import type { EgressLimits } from './egress-limits.js';
import { Rate } from './rate.js';

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
