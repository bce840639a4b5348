import { setTimeout as sleep } from 'node:timers/promises';
import {
  deleteConnection,
  deleteSource,
  deleteWebhook,
  isId,
  isNotFound,
  listConnections,
  listSourcesToDelete,
  listWebhooks,
  NotFound,
  removeFromCatalog,
  removeFromRouting,
  removeFromRuntime,
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
    /** Runs `work` unless another command for the account is in progress. */
    private readonly alone: <T>(accountId: string, work: () => Promise<T>) => Promise<T>,
  ) {}

  async find(id: string): Promise<AccountRow> {
    const account = isId('user', id) ? await this.accounts.find(id) : undefined;
    if (!account) throw new NotFound('account', id);
    return account;
  }

  /** Suspends the account, or lets it continue. Throws a conflict if another command for the account is in progress. */
  suspend(accountId: string, suspended: boolean): Promise<Counts> {
    return this.alone(accountId, async () => {
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
    });
  }

  /**
   * Deletes the account and all that it has. If the account is deleted already, deletes the rest: a request that was in progress may have created
   * something meanwhile. Throws a conflict if another command for the account is in progress.
   */
  async delete(id: string): Promise<RemovedCounts> {
    if (!isId('user', id)) throw new NotFound('account', id);
    return this.alone(id, () => this.deleteAll(id));
  }

  private async deleteAll(id: UserId): Promise<RemovedCounts> {
    const account = await this.accounts.find(id);
    await this.accounts.setSuspended(id, true);
    const { messages } = this;
    const owner = { owner_id: id };
    const page = { ...owner, limit: PER_PAGE };
    const keyed = this.keyed(id);
    const { subscriptions } = await messages.request(removeFromRouting, owner, keyed);
    const webhooks = await deletePages(
      () => messages.request(listWebhooks, page, keyed),
      (webhook) => messages.request(deleteWebhook, { ...owner, id: webhook }, keyed),
    );
    const sources = await deletePages(
      () => messages.request(listSourcesToDelete, owner, keyed),
      (source) => messages.request(deleteSource, { ...owner, id: source }, keyed),
    );
    const connections = await deletePages(
      () => messages.request(listConnections, page, keyed),
      (connection) => messages.request(deleteConnection, { ...owner, id: connection }, keyed),
    );
    await this.hooksHaveRun(id);
    const { components, workflows } = await messages.request(removeFromCatalog, owner, keyed);
    const counts = { sources, workflows, webhooks, components, connections, subscriptions, keys: await this.deleteRows(id) };
    if (!account && Object.values(counts).every((count) => count === 0)) throw new NotFound('account', id);
    return counts;
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

/** Deletes page after page, until there is nothing more. Returns how many this call has deleted. */
async function deletePages<Id>(list: () => Promise<{ data: { id: Id }[] }>, remove: (id: Id) => Promise<void>): Promise<number> {
  for (let deleted = 0; ;) {
    const ids = (await list()).data.map(({ id }) => id);
    if (ids.length === 0) return deleted;
    const worker = async () => {
      for (let id; (id = ids.pop()) !== undefined;) if (await isRemoved(remove(id))) deleted += 1;
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  }
}

/** Resolves with false if it is gone already. */
async function isRemoved(removal: Promise<void>): Promise<boolean> {
  try {
    await removal;
    return true;
  } catch (error) {
    // a command that was interrupted is still in progress
    if (isNotFound(error)) return false;
    throw error;
  }
}
