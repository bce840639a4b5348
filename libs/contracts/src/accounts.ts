import { IsBoolean } from 'class-validator';
import { command, query } from './contract.js';
import { IsId, type SourceId, type UserId } from './ids.js';

/** An account whose resources a service suspends, or lets continue. */
export class AccountSuspension {
  @IsId('user') owner_id!: UserId;
  @IsBoolean() suspended!: boolean;
}

/** How many emitters this call has changed, and whether there may be more: an account may have more than one call can change. */
export interface SuspendedEmitters {
  sources: number;
  workflows: number;
  more: boolean;
}
/** Sources and workflows keep their settings, but count as inactive. Repeating it changes nothing. */
export const suspendEmitters = command<SuspendedEmitters>()('catalog.account.suspend', AccountSuspension);
/** Webhooks keep their settings, but nothing is delivered to them. Repeating it changes nothing. Returns how many were changed. */
export const suspendWebhooks = command<{ webhooks: number }>()('routing.account.suspend', AccountSuspension);

/** An account that is being deleted. Its sources, webhooks and connections are deleted one by one, as their owner would delete them. */
export class AccountRemoval {
  @IsId('user') owner_id!: UserId;
}

/** The next of the sources, at most 100, without their props: the operator's command cannot decrypt these. */
export const listSourcesToDelete = query<{ data: { id: SourceId }[] }>()('catalog.account.list-sources', AccountRemoval);
/** Deletes subscriptions, auto-subscriptions and replays, so that nothing more is delivered. Returns how many subscriptions of both kinds there were. */
export const removeFromRouting = command<{ subscriptions: number }>()('routing.account.remove', AccountRemoval);
/** Deletes the counted usage. Returns how many hooks of deleted sources still have to run: their code must stay until then. */
export const removeFromRuntime = command<{ hooks: number }>()('runtime.account.remove', AccountRemoval);
/** Deletes components, with code that no other account uses, and workflows. */
export const removeFromCatalog = command<{ components: number; workflows: number }>()('catalog.account.remove', AccountRemoval);

export class ListFullAccounts {}

/** An account whose waiting data has reached its limit in a service. */
export interface FullAccount {
  owner_id: UserId;
  /** For users: what waits, and what its owner can do. */
  reason: string;
}
/** Those whose deliveries and postponed events have reached the limit. What such an account sends in is refused. */
export const listFullInRouting = query<FullAccount[]>()('routing.account.list-full', ListFullAccounts);
/** Those whose runs and emits that wait have reached the limit. */
export const listFullInRuntime = query<FullAccount[]>()('runtime.account.list-full', ListFullAccounts);
