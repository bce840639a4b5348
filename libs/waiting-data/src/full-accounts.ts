import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FullAccount, ListFullAccounts, type Query, TooManyRequests, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { WaitingData } from './waiting-data.js';

const ASK_MS = 5000;

export type ListsFullAccounts = Query<ListFullAccounts, FullAccount[]>;

/** The queries of the other services that have waiting data. */
export const LISTS_OF_OTHERS = Symbol('LISTS_OF_OTHERS');

/**
 * The accounts that are full in any service. Those of the other services are as old as a few seconds; while one of them does not respond, its last reply
 * counts.
 */
@Injectable()
export class FullAccounts implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly stopped = new AbortController();
  private readonly ofOthers = new Map<string, Map<UserId, string>>();

  constructor(
    private readonly messages: Messages,
    @Inject(LISTS_OF_OTHERS) private readonly lists: ListsFullAccounts[],
    @Optional() private readonly own?: WaitingData,
  ) {}

  onApplicationBootstrap(): void {
    for (const list of this.lists) void this.askAgainAndAgain(list);
  }

  onApplicationShutdown(): void {
    this.stopped.abort();
  }

  /** Whether it is full in this service or another one. */
  isFull(id: UserId): boolean {
    return this.own?.isFull(id) === true || this.reasonOfOthers(id) !== undefined;
  }

  /** Whether it is full in the service that replies to this query. */
  isFullIn(list: ListsFullAccounts, id: UserId): boolean {
    return this.ofOthers.get(list.name)?.has(id) ?? false;
  }

  /** @throws TooManyRequests if the account is full */
  refuseFull(id: UserId): void {
    const reason = this.own?.isFull(id) ? this.own.reasonFor(id) : this.reasonOfOthers(id);
    if (reason !== undefined) throw new TooManyRequests(reason);
  }

  /** Asks another service. */
  async ask(list: ListsFullAccounts): Promise<void> {
    const full = await this.messages.request(list, new ListFullAccounts(), { key: list.name, timeoutMs: ASK_MS });
    this.ofOthers.set(list.name, new Map(full.map(({ owner_id, reason }) => [owner_id, reason])));
  }

  private reasonOfOthers(id: UserId): string | undefined {
    for (const full of this.ofOthers.values()) if (full.has(id)) return full.get(id);
    return undefined;
  }

  private async askAgainAndAgain(list: ListsFullAccounts): Promise<void> {
    while (!this.stopped.signal.aborted) {
      // one that is down reports that itself
      await this.ask(list).catch(() => {});
      await sleep(ASK_MS, undefined, { signal: this.stopped.signal, ref: false }).catch(() => {});
    }
  }
}
