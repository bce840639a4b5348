import { Slots } from '#limits';
import { Turns } from './turns.js';

/** Limits of components' connections; times in ms. The first four apply to an account, the next one to a process, the others to one connection. */
export interface EgressLimits {
  /** Concurrent connections. Further ones wait, because refusing them would break a `Promise.all` over a hundred requests */
  connections: number;
  waiting: number;
  perMinute: number;
  /** Chunks that are forwarded, in both directions. Beyond that, connections are read in turns, and what waits becomes larger chunks */
  chunksPerSecond: number;
  /** Refused connections of one process, after which it is ended: each costs the parent as much as it costs the process */
  refusedPerMinute: number;
  /** Time to send the CONNECT request */
  headMs: number;
  /** Time to connect, and the longest wait for a free connection */
  connectMs: number;
  /** Time without a byte in either direction */
  idleMs: number;
  lifeMs: number;
  /** Time in which the server can take the rest after the process has closed the connection */
  lingerMs: number;
  bytesDown: number;
  bytesUp: number;
}

export const defaultEgressLimits: EgressLimits = {
  connections: 256,
  waiting: 500,
  perMinute: 1200,
  chunksPerSecond: 1000,
  refusedPerMinute: 5000,
  headMs: 5_000,
  connectMs: 10_000,
  idleMs: 60_000,
  lifeMs: 300_000,
  lingerMs: 10_000,
  bytesDown: 64 << 20,
  bytesUp: 16 << 20,
};

/** Charges an account for time of the main thread, in ms. An account without an id is the operator. */
export type Spend = (accountId: string, ms: number) => void;

// Measured: the time of the main thread that forwarding a chunk takes, mostly in the kernel, and a byte of it in addition
const chunkMs = 0.04;
const byteMs = 0.03 / 65_536;
/** The account is charged whenever it owes this much: a charge takes time, too. */
const chargedMs = 1;

/** The connections that one account may open. All of its processes share the budget, so a crash does not reset the limit. */
export class EgressBudget {
  private readonly slots: Slots;
  private readonly rate: Rate;
  private readonly chunks: Turns;
  private held = 0;
  private owedMs = 0;
  private usedAt = performance.now();

  /** @param charge receives the time of the main thread that the account owes, in ms */
  constructor(
    private readonly limits: Pick<EgressLimits, 'connections' | 'waiting' | 'perMinute' | 'chunksPerSecond' | 'connectMs'>,
    private readonly charge: (ms: number) => void = () => {},
  ) {
    this.slots = new Slots(limits.connections);
    this.rate = new Rate(limits.perMinute);
    this.chunks = new Turns(limits.chunksPerSecond);
  }

  /** Waits for a free connection. @returns true: call `give` when the connection is closed at both ends; false: there are too many */
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

  /** Counts a chunk that a connection forwards. */
  count(bytes: number): void {
    this.usedAt = performance.now();
    this.spend(chunkMs + bytes * byteMs);
  }

  /** Calls `read` when a connection may read its next chunk. */
  nextChunk(read: () => void): void {
    this.chunks.take(read);
  }

  /** Counts time of the main thread that the account has used, in ms. */
  spend(ms: number): void {
    this.owedMs += ms;
    if (this.owedMs < chargedMs) return;
    this.charge(this.owedMs);
    this.owedMs = 0;
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

  constructor(
    private readonly limits: EgressLimits,
    private readonly charge: Spend = () => {},
  ) {}

  of(accountId: string): EgressBudget {
    const known = this.budgets.get(accountId);
    if (known) return known;
    if (this.budgets.size >= mostKept) for (const [id, budget] of this.budgets) if (budget.isFull) this.budgets.delete(id);
    const budget = new EgressBudget(this.limits, (ms) => this.charge(accountId, ms));
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
