import type { AutoSubscription, SluiceClient, Source, Subscription, Webhook } from '@sluice/client';
import { SOURCES, WEBHOOKS } from '../resources/kinds.js';

/** The account as it is. */
export interface AccountState {
  accountId: string;
  sources: Source[];
  webhooks: Webhook[];
  subscriptions: Subscription[];
  autoSubscriptions: AutoSubscription[];
}

export async function readState(sluice: SluiceClient): Promise<AccountState> {
  const [sources, webhooks]: [Source[], Webhook[]] = [[], []];
  for await (const source of SOURCES.list(sluice)) sources.push(source);
  for await (const webhook of WEBHOOKS.list(sluice)) webhooks.push(webhook);
  const [{ data: account }, { data: subscriptions }, { data: autoSubscriptions }] = await Promise.all([
    sluice.getCurrentUser(),
    sluice.listSubscriptions(),
    sluice.listAutoSubscriptions(),
  ]);
  return { accountId: account.id, sources, webhooks, subscriptions, autoSubscriptions };
}
