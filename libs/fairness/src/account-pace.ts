import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { UserId } from '#contracts';
import { counter } from '#observability';
import { Contention } from './contention.js';
import { Pace } from './pace.js';

/** The cost of a request, beside that of its body and of a run. */
export const REQUEST_UNITS = 1;
/** The cost of a run, beside that of what it reads and emits. */
export const RUN_UNITS = 1;
/** The additional cost of work whose process ends with it, because another one is started. */
export const KILL_UNITS = 20;
/** No request waits longer, because its client would give up. */
const LONGEST_REQUEST_WAIT_MS = 2000;
/**
 * While requests of an account wait that will probably cost as much together, further ones that would wait that long are refused. As much, every two
 * seconds, is the pace to which an account is slowed down at most. A client that sends one request at a time is never refused.
 */
const MAX_WAITING_UNITS = 100;
/** How much the newest request counts in what a request of its account costs. */
const NEWEST = 0.2;
/** The cost of an event that is stored and routed, in units. */
export const EVENT_UNITS = 0.5;
/** A body of this size costs a unit. */
export const BYTES_PER_UNIT = 64 * 1024;
/** Time of the main thread that costs a unit: while it works for one account, all others wait. */
export const MS_PER_UNIT = 1;
const ADJUST_EVERY_MS = 200;
const slowed = counter(
  'accounts_slowed_seconds_total',
  'Time that work of accounts has waited because they did more than others while processors were short.',
);

/** An account with the requests that wait and the cost of its work. */
interface Known {
  waitingRequests: number;
  /** The cost in addition to the price of each, on average, in units. */
  extra: { request: number; run: number };
}

/** The pace of this replica's accounts. It measures only while accounts are active. */
@Injectable()
export class AccountPace implements OnApplicationShutdown {
  private readonly pace = new Pace();
  private readonly contention = new Contention();
  private readonly known = new Map<UserId, Known>();
  private timer: NodeJS.Timeout | undefined;

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /** Resolves when a run of the account may begin. One unit is about a run, or a millisecond of the main thread. */
  async runTurn(account: UserId, units: number): Promise<void> {
    const price = units + this.knownOf(account).extra.run;
    const ms = this.pace.admitInTurn(account, price, performance.now());
    this.watch();
    if (ms > 0) await this.delay(ms);
  }

  /**
   * Resolves when a request of the account may be handled: with true, or at once with false if too many of its requests wait. A request waits for two
   * seconds at most, whatever the account did before.
   */
  async requestTurn(account: UserId, units: number): Promise<boolean> {
    const known = this.knownOf(account);
    const price = units + known.extra.request;
    if (known.waitingRequests * price >= MAX_WAITING_UNITS && this.wait(account) > LONGEST_REQUEST_WAIT_MS) return false;
    await this.delayRequest(account, units);
    return true;
  }

  /** The same for requests that are limited in another way, too: none is refused. */
  async delayRequest(account: UserId, units: number): Promise<void> {
    const known = this.knownOf(account);
    const ms = Math.min(this.admit(account, units + known.extra.request), LONGEST_REQUEST_WAIT_MS);
    if (ms <= 0) return;
    known.waitingRequests++;
    try {
      await this.delay(ms);
    } finally {
      known.waitingRequests--;
    }
  }

  /** Counts what a request or a run has cost in addition, once for each. Its turn has counted what the last ones have cost. */
  spendOn(work: 'request' | 'run', account: UserId, units: number): void {
    const { extra } = this.knownOf(account);
    const difference = units - extra[work];
    extra[work] += NEWEST * difference;
    this.spend(account, difference);
  }

  /** Counts what the work of an account has cost in addition; its next work waits for it. */
  spend(account: UserId, units: number): void {
    this.admit(account, units);
  }

  private knownOf(account: UserId): Known {
    let known = this.known.get(account);
    if (!known) this.known.set(account, (known = { waitingRequests: 0, extra: { request: 0, run: 0 } }));
    return known;
  }

  /** How long work of the account would wait now, in ms. */
  private wait(account: UserId): number {
    return this.pace.wait(account, performance.now());
  }

  private admit(account: UserId, units: number): number {
    const ms = this.pace.admit(account, units, performance.now());
    this.watch();
    return ms;
  }

  private async delay(ms: number): Promise<void> {
    slowed.inc(ms / 1000);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  private watch(): void {
    if (this.timer) return;
    // what was before does not count
    this.contention.sample();
    this.timer = setInterval(() => this.adjust(), ADJUST_EVERY_MS).unref();
  }

  private adjust(): void {
    this.pace.adjust(this.contention.sample(), performance.now());
    for (const account of this.known.keys()) if (!this.pace.isActive(account)) this.known.delete(account);
    if (this.pace.isIdle) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
