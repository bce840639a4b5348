import { setTimeout as sleep } from 'node:timers/promises';
import {
  deleteConnection,
  deleteSource,
  deleteWebhook,
  isId,
  listConnections,
  listSources,
  listWebhooks,
  NotFound,
  type Page,
  removeFromCatalog,
  removeFromRouting,
  removeFromRuntime,
  SluiceError,
  suspendEmitters,
  suspendWebhooks,
  type UserId,
} from '#contracts';
import type { Messages } from '#messaging';
import type { AccountRow } from '../accounts/account.entity.js';
import type { AccountsRepository } from '../accounts/accounts.repository.js';

/** How much a suspension has changed. */
export type Counts = Record<'sources' | 'workflows' | 'webhooks', number>;
/** How much a deletion has deleted. */
export type RemovedCounts = Counts & Record<'components' | 'connections' | 'subscriptions' | 'keys', number>;

/** Deleting a webhook deletes its backlog, which may have millions of deliveries. */
const TIMEOUT_MS = 120_000;
const PER_PAGE = 100;
/** Resources of one account that are deleted at a time: the services work for others, too. */
const AT_A_TIME = 8;
/** Longer than a hook may take. */
const HOOKS_WAIT_MS = 60_000;
const LOOK_MS = 500;

/**
 * The operator's commands that concern all services. Each step may be repeated, so a command that was interrupted is repeated as a whole. Access is
 * revoked first, and the account itself is deleted last.
 */
export class AccountOperations {
  constructor(
    private readonly accounts: Pick<AccountsRepository, 'find' | 'setSuspended'>,
    /** Deletes what the gateway has of the account; returns the number of its keys. */
    private readonly deleteRows: (id: UserId) => Promise<number>,
    private readonly messages: Pick<Messages, 'request'>,
  ) {}

  async find(id: string): Promise<AccountRow> {
    const account = isId('user', id) ? await this.accounts.find(id) : undefined;
    if (!account) throw new NotFound('account', id);
    return account;
  }

  /** Suspends the account, or lets it continue. */
  async suspend(accountId: string, suspended: boolean): Promise<Counts> {
    const { id } = await this.find(accountId);
    if (suspended) await this.accounts.setSuspended(id, true);
    const { webhooks } = await this.messages.request(suspendWebhooks, { owner_id: id, suspended }, this.keyed(id));
    const counts: Counts = { sources: 0, workflows: 0, webhooks };
    for (let more = true; more;) {
      const changed = await this.messages.request(suspendEmitters, { owner_id: id, suspended }, this.keyed(id));
      counts.sources += changed.sources;
      counts.workflows += changed.workflows;
      ({ more } = changed);
    }
    // last: until then a repeated command finds the account as it was
    if (!suspended) await this.accounts.setSuspended(id, false);
    return counts;
  }

  /**
   * Deletes the account and all that it has. If the account is deleted already, deletes the rest: a request that was in progress may have created
   * something meanwhile.
   */
  async delete(id: string): Promise<RemovedCounts> {
    if (!isId('user', id)) throw new NotFound('account', id);
    const account = await this.accounts.find(id);
    await this.accounts.setSuspended(id, true);
    const owner = { owner_id: id };
    const { subscriptions } = await this.messages.request(removeFromRouting, owner, this.keyed(id));
    const webhooks = await this.deleteAll(id, listWebhooks, deleteWebhook);
    const sources = await this.deleteAll(id, listSources, deleteSource);
    const connections = await this.deleteAll(id, listConnections, deleteConnection);
    await this.hooksHaveRun(id);
    const { components, workflows } = await this.messages.request(removeFromCatalog, owner, this.keyed(id));
    const counts = { sources, workflows, webhooks, components, connections, subscriptions, keys: await this.deleteRows(id) };
    if (!account && Object.values(counts).every((count) => count === 0)) throw new NotFound('account', id);
    return counts;
  }

  /** Deletes page after page, until the service has nothing more of the account. */
  private async deleteAll(ownerId: UserId, list: typeof listSources, remove: typeof deleteSource): Promise<number>;
  private async deleteAll(ownerId: UserId, list: typeof listWebhooks, remove: typeof deleteWebhook): Promise<number>;
  private async deleteAll(ownerId: UserId, list: typeof listConnections, remove: typeof deleteConnection): Promise<number>;
  private async deleteAll(ownerId: UserId, list: never, remove: never): Promise<number> {
    for (let deleted = 0; ;) {
      const page: Page<{ id: string }> = await this.messages.request(
        list,
        { owner_id: ownerId, limit: PER_PAGE } as never,
        this.keyed(ownerId),
      );
      if (page.data.length === 0) return deleted;
      const ids = page.data.map(({ id }) => id);
      const worker = async () => {
        for (let id; (id = ids.pop()) !== undefined;) if (await this.deleteOne(ownerId, id, remove)) deleted += 1;
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, worker));
    }
  }

  /** Returns false if it is gone already. */
  private async deleteOne(ownerId: UserId, id: string, remove: never): Promise<boolean> {
    try {
      await this.messages.request(remove, { owner_id: ownerId, id } as never, this.keyed(ownerId));
      return true;
    } catch (error) {
      // a command that was interrupted is still in progress
      if (error instanceof SluiceError && error.code === 'not_found') return false;
      throw error;
    }
  }

  /** The last hook of a deleted source needs its code, which is deleted after that. A hook that takes longer fails. */
  private async hooksHaveRun(ownerId: UserId): Promise<void> {
    for (const until = Date.now() + HOOKS_WAIT_MS; ;) {
      const { hooks } = await this.messages.request(removeFromRuntime, { owner_id: ownerId }, this.keyed(ownerId));
      if (hooks === 0 || Date.now() > until) return;
      await sleep(LOOK_MS);
    }
  }

  private keyed(key: UserId): { key: string; timeoutMs: number } {
    return { key, timeoutMs: TIMEOUT_MS };
  }
}
