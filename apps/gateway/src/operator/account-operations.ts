import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Command,
  deleteConnection,
  deleteSource,
  deleteWebhook,
  isId,
  isNotFound,
  listConnections,
  listSourcesToDelete,
  listWebhooks,
  NotFound,
  type Query,
  removeFromCatalog,
  removeFromRouting,
  removeFromRuntime,
  suspendEmitters,
  suspendWebhooks,
  TimedOut,
  type UserId,
} from '#contracts';
import type { Messages } from '#messaging';
import type { AccountRow } from '../accounts/account.entity.js';
import type { AccountsService } from '../accounts/accounts.service.js';

/** How much a suspension has changed. */
export type Counts = Record<'sources' | 'workflows' | 'webhooks', number>;
/** How much a deletion has deleted. */
export type RemovedCounts = Counts & Record<'components' | 'connections' | 'subscriptions' | 'keys', number>;

/** Deleting a webhook deletes its backlog, which may have millions of deliveries. */
const TIMEOUT_MS = 120_000;
/** The operator is informed of a service that has not responded for this long. */
const REMARK_MS = 5000;
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
  /** For the operator, if the command ends now: its effect so far, and how to complete it. */
  unfinished: string | undefined;
  /** The services for which the operator knows that the command waits. */
  private readonly announced = new Set<string>();

  constructor(
    private readonly accounts: Pick<AccountsService, 'find' | 'setSuspended'>,
    /** Deletes what the gateway has of the account; returns the number of its keys. */
    private readonly deleteRows: (id: UserId) => Promise<number>,
    private readonly messages: Pick<Messages, 'request'>,
    /** Runs `work` unless another command for the account is in progress. */
    private readonly alone: <T>(accountId: string, work: () => Promise<T>) => Promise<T>,
    /** Informs the operator while a command takes long. */
    private readonly remark: (text: string) => void,
  ) {}

  async find(id: string): Promise<AccountRow> {
    const account = await this.accounts.find(id);
    if (!account) throw new NotFound('account', id);
    return account;
  }

  /** Suspends the account, or lets it continue. Throws a conflict if another command for the account is in progress. */
  suspend(accountId: string, suspended: boolean): Promise<Counts> {
    return this.alone(accountId, async () => {
      const { id } = await this.find(accountId);
      if (suspended) await this.accounts.setSuspended(id, true);
      this.unfinished = suspended
        ? "the account's keys are refused already, but not everything is stopped: repeat the command"
        : 'not everything of the account continues yet: repeat the command';
      const { webhooks } = await this.request(suspendWebhooks, { owner_id: id, suspended });
      const counts: Counts = { sources: 0, workflows: 0, webhooks };
      // at least two: what was being created during the first one is found by the second
      for (let [more, rounds] = [true, 0]; more || rounds < 2; rounds++) {
        const changed = await this.request(suspendEmitters, { owner_id: id, suspended });
        counts.sources += changed.sources;
        counts.workflows += changed.workflows;
        ({ more } = changed);
      }
      // last: until then a repeated command finds the account as it was
      if (!suspended) await this.accounts.setSuspended(id, false);
      this.unfinished = undefined;
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
    this.unfinished = "the account's keys are refused already, but not everything is deleted: repeat the command";
    const owner = { owner_id: id };
    const page = { ...owner, limit: PER_PAGE };
    const { subscriptions } = await this.request(removeFromRouting, owner);
    const webhooks = await deletePages(
      () => this.request(listWebhooks, page),
      (webhook) => this.request(deleteWebhook, { ...owner, id: webhook }),
    );
    const sources = await deletePages(
      () => this.request(listSourcesToDelete, owner),
      (source) => this.request(deleteSource, { ...owner, id: source }),
    );
    const connections = await deletePages(
      () => this.request(listConnections, page),
      (connection) => this.request(deleteConnection, { ...owner, id: connection }),
    );
    await this.hooksHaveRun(id);
    const { components, workflows } = await this.request(removeFromCatalog, owner);
    const counts = { sources, workflows, webhooks, components, connections, subscriptions, keys: await this.deleteRows(id) };
    this.unfinished = undefined;
    if (!account && Object.values(counts).every((count) => count === 0)) throw new NotFound('account', id);
    return counts;
  }

  /** The last hook of a deleted source needs its code, which is deleted after that. A hook that takes longer fails. */
  private async hooksHaveRun(ownerId: UserId): Promise<void> {
    for (const until = performance.now() + HOOKS_WAIT_MS; ;) {
      const { hooks } = await this.request(removeFromRuntime, { owner_id: ownerId });
      if (hooks === 0 || performance.now() > until) return;
      await sleep(LOOK_MS);
    }
  }

  private async request<Payload extends { owner_id: UserId }, Reply>(
    contract: Command<Payload, Reply> | Query<Payload, Reply>,
    payload: Payload,
  ): Promise<Reply> {
    const [service = ''] = contract.name.split('.');
    const remark = setTimeout(() => this.announceWait(service), REMARK_MS);
    try {
      return await this.messages.request(contract, payload, { account: payload.owner_id, timeoutMs: TIMEOUT_MS });
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error;
      throw new TimedOut(`the service ${service} does not respond`);
    } finally {
      clearTimeout(remark);
    }
  }

  private announceWait(service: string): void {
    if (this.announced.has(service)) return;
    this.announced.add(service);
    this.remark(`waiting for the service ${service}, for up to ${TIMEOUT_MS / 1000} s`);
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
