import { Inject, Injectable, type OnApplicationBootstrap, Optional } from '@nestjs/common';
import { type FullAccount, ListFullAccounts, type Query, TooManyRequests, type UserId } from '#contracts';
import { Messages, withLateReplies } from '#messaging';
import { WaitingData } from './waiting-data.js';

/** How old the reply of another service may be while callers ask here, and how long it may take. */
const ASK_MS = 5000;
/** The account may have space again since. */
const OLD_MS = 60_000;

export type ListsFullAccounts = Query<ListFullAccounts, FullAccount[]>;

/** The queries of the other services that have waiting data. */
export const LISTS_OF_OTHERS = Symbol('LISTS_OF_OTHERS');

/**
 * The accounts that are full in any service. The other services are asked while callers ask here: their replies may be a few seconds old, or as
 * old as the last question. A request waits for new replies before ones that are older than a minute refuse it. While a service does not respond, its
 * last reply counts.
 */
@Injectable()
export class FullAccounts implements OnApplicationBootstrap {
  private readonly ofOthers = new Map<string, Map<UserId, string>>();
  private askedAt = -Infinity;
  private asking: Promise<void> | undefined;
  /** When the last question was asked that has been replied to. */
  private knownAt = -Infinity;

  constructor(
    private readonly messages: Messages,
    @Inject(LISTS_OF_OTHERS) private readonly lists: ListsFullAccounts[],
    @Optional() private readonly own?: WaitingData,
  ) {}

  onApplicationBootstrap(): void {
    this.askWhenOld();
  }

  /** Whether it is full in this service or another one. */
  async isFull(id: UserId): Promise<boolean> {
    return (await this.reasonFor(id)) !== undefined;
  }

  /** Whether it is full in the service that replies to this query. */
  isFullIn(list: ListsFullAccounts, id: UserId): boolean {
    this.askWhenOld();
    return this.ofOthers.get(list.name)?.has(id) ?? false;
  }

  /** @throws TooManyRequests if the account is full */
  async refuseFull(id: UserId): Promise<void> {
    const reason = await this.reasonFor(id);
    if (reason !== undefined) throw new TooManyRequests(reason);
  }

  /** Asks another service. */
  async ask(list: ListsFullAccounts): Promise<void> {
    // a request that accepts late replies must not wait for this one: the last reply counts
    const full = await withLateReplies(undefined, () =>
      this.messages.request(list, new ListFullAccounts(), { account: null, key: list.name, timeoutMs: ASK_MS }),
    );
    this.ofOthers.set(list.name, new Map(full.map(({ owner_id, reason }) => [owner_id, reason])));
  }

  private async reasonFor(id: UserId): Promise<string | undefined> {
    if (this.own?.isFull(id)) return this.own.reasonFor(id);
    const reason = this.reasonOfOthers(id);
    if (reason === undefined || performance.now() - this.knownAt < OLD_MS) return reason;
    await this.asking;
    return this.reasonOfOthers(id);
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
    const replies = this.lists.map((list) => this.ask(list).catch(() => {}));
    this.asking = Promise.all(replies).then(() => void (this.knownAt = now));
  }
}
