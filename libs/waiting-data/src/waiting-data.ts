import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FullAccount, isId, type UserId } from '#contracts';
import { gauge, LOG, type Log } from '#observability';
import { type AccountOf, type WaitingCount, WaitingEntriesRepository } from './waiting-entries.js';
import { WaitingDataConfig } from './waiting-data.config.js';

const LOOK_MS = 2000;
/** Between two looks, relative to the duration of one: where very many webhooks have backlogs, counting must not occupy the database. */
const PAUSE = 20;
/** A full account is full until it has less than this share of the limit, so that it does not become full again at once. */
const BELOW = 0.9;

const rowsGauge = gauge('waiting_rows', 'Rows of the database that wait to be delivered or run, of all accounts.', ['table']);
const bytesGauge = gauge('waiting_bytes', 'Size of the rows that wait to be delivered or run, of all accounts.', ['table']);
const fullGauge = gauge('accounts_full', 'Accounts whose waiting data has reached its limit in this service.');

/** The waiting data that a service stores. */
export interface WaitingDataOptions {
  /** The tables that `countRows` counts. */
  tables: string[];
  /** The holders of some tables are not accounts. */
  accountOf?: AccountOf;
  /** For users. Completes "1 GiB of …". */
  what: string;
  /** For users: how the owner can reduce it. */
  remedy: string;
}

export const WAITING_DATA = Symbol('WAITING_DATA');

/** The waiting data of the accounts in the database of this service. */
@Injectable()
export class WaitingData implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly stopped = new AbortController();
  private work: Promise<void> = Promise.resolve();
  private counts: WaitingCount[] = [];
  private bytes = new Map<string, number>();
  private full = new Set<string>();

  constructor(
    private readonly entries: WaitingEntriesRepository,
    private readonly config: WaitingDataConfig,
    @Inject(WAITING_DATA) private readonly options: WaitingDataOptions,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.lookAgainAndAgain();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.work;
  }

  /** Counts, and reports accounts that have become full, or are no longer full. */
  async look(): Promise<void> {
    const { tables, accountOf = (holder) => holder } = this.options;
    this.counts = await this.entries.counts(accountOf);
    for (const table of tables) {
      const ofTable = this.counts.filter((count) => count.table === table);
      rowsGauge.set({ table }, sumOf(ofTable.map(({ rows }) => rows)));
      bytesGauge.set({ table }, sumOf(ofTable.map(({ bytes }) => bytes)));
    }
    this.bytes = bytesByAccount(this.counts);
    const before = this.full;
    this.full = fullAccounts(before, this.bytes, this.limit);
    fullGauge.set(this.full.size);
    for (const id of this.full) if (!before.has(id)) this.log.warn(this.fieldsOf(id), 'account.full');
    for (const id of before) if (!this.full.has(id)) this.log.info(this.fieldsOf(id), 'account.no-longer-full');
  }

  /** Those that are full in this service. */
  list(): FullAccount[] {
    return [...this.full].filter((id) => isId('user', id)).map((id) => ({ owner_id: id, reason: this.reasonFor(id) }));
  }

  isFull(id: UserId): boolean {
    return this.full.has(id);
  }

  /** Whether the rows of one table alone make the account full. */
  isFullOf(table: string, id: UserId): boolean {
    if (!this.full.has(id)) return false;
    return (
      sumOf(this.counts.filter((count) => count.table === table && count.account === id).map(({ bytes }) => bytes)) >= this.limit * BELOW
    );
  }

  private get limit(): number {
    return this.config.maxWaitingBytes || Infinity;
  }

  /** For users: why what the account sends in is refused. */
  reasonFor(id: string): string {
    const { what, remedy } = this.options;
    return `${sizeText(this.bytes.get(id) ?? 0)} of ${what} wait, and the limit is ${sizeText(this.limit)}; ${remedy}`;
  }

  private fieldsOf(id: string): object {
    return { account_id: id, bytes: this.bytes.get(id) ?? 0, limit: this.limit };
  }

  private async lookAgainAndAgain(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const begun = performance.now();
      await this.look().catch((error: Error) => this.log.warn({ err: error }, 'waiting-data.not-counted'));
      const pauseMs = Math.max(LOOK_MS, PAUSE * (performance.now() - begun));
      await sleep(pauseMs, undefined, { signal: this.stopped.signal, ref: false }).catch(() => {});
    }
  }
}

const sumOf = (numbers: number[]): number => numbers.reduce((sum, each) => sum + each, 0);

function bytesByAccount(counts: WaitingCount[]): Map<string, number> {
  const byAccount = new Map<string, number>();
  for (const { account, bytes } of counts) byAccount.set(account, (byAccount.get(account) ?? 0) + bytes);
  return byAccount;
}

/** The decision: which accounts are full, given those that were and what each has now. */
export const fullAccounts = (before: ReadonlySet<string>, bytes: ReadonlyMap<string, number>, limit: number): Set<string> =>
  new Set([...bytes].filter(([id, each]) => each >= (before.has(id) ? BELOW * limit : limit)).map(([id]) => id));

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** For users, such as `1.5 GiB`. */
export function sizeText(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${Math.round((bytes / 1024 ** step) * 10) / 10} ${UNITS[step]}`;
}
