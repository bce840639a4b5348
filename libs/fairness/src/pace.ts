/**
 * The share of the time that a thread waits for a processor, above which the machine counts as saturated, and below which accounts speed up again. It is
 * low, because an event waits in every process that it passes through.
 */
const SATURATED = 0.15;
const RELAXED = 0.08;
/** An account is slowed down while it is this many times as fast as the slowest one. */
const UNFAIR = 2;
/** An account is active for this long after its last work. */
const ACTIVE_MS = 5000;
/** How much the newest window counts in an account's rate. */
const NEWEST = 0.4;
const SLOWER = 0.5;
const FASTER = 1.15;
/** Each of these changes is that of 200 ms. A main thread that was blocked adjusts later, and makes up for it. */
const STEP_S = 0.2;
const MAX_STEPS = 5;
/** Units per second to which an account is slowed down at most. */
const SLOWEST = 50;
/**
 * Units per second that are divided among the active accounts. One that uses less than its part is not slowed down: others have saturated the machine, and
 * a neighbour that does next to nothing would make it slow.
 */
const DIVIDED = 400;
/** How long an account that uses more than its part is kept slow; twice as long each time that it does so again soon. */
const SHORTEST_HOLD_MS = 4000;
const LONGEST_HOLD_MS = 64_000;
/** Work waits at most this long: what an account did before is forgotten after that. */
const LONGEST_WAIT_MS = 5000;
/** Between two pieces of work that wait in turn. */
const LONGEST_GAP_MS = 2000;
/** Work that would wait this long shows that its account is at its limit. */
const AT_LIMIT_MS = 500;
/** An account with this much more than it uses does not need a limit. */
const UNUSED = { factor: 2, units: 50 };

interface Account {
  /** Units since the last adjustment. */
  used: number;
  /** Units per second, as of the last adjustment. */
  rate: number;
  /** Units per second; undefined: as many as it likes. */
  limit?: number;
  /** Until when it stays slow, in ms, and how long it was to stay so last. */
  heldUntil: number;
  holdMs: number;
  /** When its next unit may begin, in ms. */
  nextAt: number;
  /** When its last work came, in ms. */
  seenAt: number;
}

/**
 * How fast the work of accounts may begin. As long as the machine has time, everything begins at once. While it is saturated, those that do more than
 * others and more than their part are slowed down, step by step, until it is not; an account that is alone has all of it.
 *
 *   saturated ─► more than its part, and than twice as fast as the slowest one? ─► it is held: half as fast, and again
 *   the machine has time ─► its limit becomes 15 % higher, and ends when it is not used
 *   it was held for some seconds ─► its limit is its part: what saturates the machine may be something else
 *
 * Work is counted in units: one is about a run, or a millisecond of the main thread. The slowest pace leaves the others 95 % of it.
 */
export class Pace {
  private readonly accounts = new Map<string, Account>();
  private adjustedAt: number | undefined;

  /** Whether no account has anything to do. */
  get isIdle(): boolean {
    return this.accounts.size === 0;
  }

  /** Whether the account had something to do lately. */
  isActive(account: string): boolean {
    return this.accounts.has(account);
  }

  /** Counts work of an account, and returns how long it waits before it begins, in ms. @param units below 0 if work has cost less than was counted */
  admit(account: string, units: number, now: number): number {
    return this.take(account, units, now, LONGEST_WAIT_MS);
  }

  /** As `admit`, for work of which an account has a limited number at a time: what waits together begins one after the other, however long that takes. */
  admitInTurn(account: string, units: number, now: number): number {
    return this.take(account, units, now, Math.max(LONGEST_WAIT_MS, this.wait(account, now) + LONGEST_GAP_MS));
  }

  /** How long work of the account would wait, in ms. */
  wait(account: string, now: number): number {
    const known = this.accounts.get(account);
    return known?.limit === undefined ? 0 : Math.max(0, known.nextAt - now);
  }

  /** Called several times a second. @param contention as `Contention` measures it */
  adjust(contention: number, now: number): void {
    const seconds = this.adjustedAt === undefined ? 0 : (now - this.adjustedAt) / 1000;
    this.adjustedAt = now;
    if (seconds <= 0) return;
    for (const account of this.accounts.values()) {
      // what has cost less than was counted makes nobody slower than one that does nothing
      account.rate = Math.max(0, account.rate + NEWEST * (account.used / seconds - account.rate));
      account.used = 0;
    }
    for (const [id, account] of this.accounts) if (now - account.seenAt > ACTIVE_MS) this.accounts.delete(id);
    const steps = Math.min(seconds / STEP_S, MAX_STEPS);
    const slowest = Math.min(...[...this.accounts.values()].map(({ rate }) => rate));
    const part = Math.max(SLOWEST, DIVIDED / this.accounts.size);
    for (const account of this.accounts.values()) {
      const rate = rateOf(account, now);
      const isFast = this.accounts.size > 1 && rate > UNFAIR * slowest;
      if (contention > SATURATED && isFast) {
        if (rate >= part) hold(account, now);
        if (now < account.heldUntil) slowDown(account, steps);
        else release(account, part, now);
      } else if (contention < RELAXED || !isFast) speedUp(account, rate, steps);
    }
  }

  private take(account: string, units: number, now: number, longest: number): number {
    const known = this.count(account, units, now);
    if (known.limit === undefined) return 0;
    const at = Math.max(now, known.nextAt);
    const next = at + (units / known.limit) * 1000;
    known.nextAt = units < 0 ? next : Math.max(known.nextAt, Math.min(next, now + longest));
    return at - now;
  }

  private count(id: string, units: number, now: number): Account {
    let account = this.accounts.get(id);
    if (!account) this.accounts.set(id, (account = { used: 0, rate: 0, heldUntil: -Infinity, holdMs: 0, nextAt: 0, seenAt: now }));
    account.used += units;
    account.seenAt = now;
    return account;
  }
}

/** An account that would wait uses all of its limit, even if what it does is large and rare, so that nothing of it began lately. */
const rateOf = ({ rate, limit, nextAt }: Account, now: number): number =>
  limit !== undefined && nextAt > now + AT_LIMIT_MS ? Math.max(rate, limit) : rate;

function hold(account: Account, now: number): void {
  if (now < account.heldUntil) return;
  const isRepeated = now < account.heldUntil + LONGEST_HOLD_MS;
  account.holdMs = isRepeated ? Math.min(LONGEST_HOLD_MS, 2 * account.holdMs) : SHORTEST_HOLD_MS;
  account.heldUntil = now + account.holdMs;
}

/** It may use its part, and what has waited longer than necessary does not count any more. */
function release(account: Account, part: number, now: number): void {
  if (account.limit === undefined || account.limit >= part) return;
  account.limit = part;
  account.nextAt = Math.min(account.nextAt, now);
}

function slowDown(account: Account, steps: number): void {
  account.limit = Math.max(SLOWEST, SLOWER ** steps * Math.min(account.limit ?? Infinity, account.rate));
}

function speedUp(account: Account, rate: number, steps: number): void {
  if (account.limit === undefined) return;
  account.limit *= FASTER ** steps;
  if (account.limit > UNUSED.factor * rate + UNUSED.units) account.limit = undefined;
}
