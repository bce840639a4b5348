import { Inject, Injectable, type OnApplicationBootstrap, Optional } from '@nestjs/common';
import { type FullAccount, ListFullAccounts, type Query, TooManyRequests, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { WaitingData } from './waiting-data.js';

/** How old the reply of another service may be, and how long it may take. */
const ASK_MS = 5000;

export type ListsFullAccounts = Query<ListFullAccounts, FullAccount[]>;

/** The queries of the other services that have waiting data. */
export const LISTS_OF_OTHERS = Symbol('LISTS_OF_OTHERS');

/**
 * The accounts that are full in any service. The other services are asked while callers ask here: their replies may be a few seconds old, or as
 * old as the last question. While one of them does not respond, its last reply counts.
 */
@Injectable()
export class FullAccounts implements OnApplicationBootstrap {
  private readonly ofOthers = new Map<string, Map<UserId, string>>();
  private askedAt = -Infinity;

  constructor(
    private readonly messages: Messages,
    @Inject(LISTS_OF_OTHERS) private readonly lists: ListsFullAccounts[],
    @Optional() private readonly own?: WaitingData,
  ) {}

  onApplicationBootstrap(): void {
    this.askWhenOld();
  }

  /** Whether it is full in this service or another one. */
  isFull(id: UserId): boolean {
    return this.own?.isFull(id) === true || this.reasonOfOthers(id) !== undefined;
  }

  /** Whether it is full in the service that replies to this query. */
  isFullIn(list: ListsFullAccounts, id: UserId): boolean {
    this.askWhenOld();
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
    this.askWhenOld();
    for (const full of this.ofOthers.values()) if (full.has(id)) return full.get(id);
    return undefined;
  }

  private askWhenOld(): void {
    const now = performance.now();
    if (now - this.askedAt < ASK_MS) return;
    this.askedAt = now;
    // one that is down reports that itself
    for (const list of this.lists) void this.ask(list).catch(() => {});
  }
}
