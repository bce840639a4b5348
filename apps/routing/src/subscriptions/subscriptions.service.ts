import { Injectable } from '@nestjs/common';
import {
  type AutoSubscription,
  type AutoSubscriptionReference,
  Invalid,
  isId,
  type ListSubscriptions,
  NotFound,
  type Subscription,
  type SubscriptionReference,
  SUBSCRIPTIONS_PER_REPLY,
  type UserId,
} from '#contracts';
import { Database, type Transaction } from '#database';
import { EmitterDirectory } from '#emitters';
import { autoSubscriptionProblems, isEmitterPattern, subscriptionProblems } from '#events';
import { RoutingConfig } from '../routing.config.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import { AutoSubscriptionsRepository } from './auto-subscriptions.repository.js';
import { SubscriptionsRepository } from './subscriptions.repository.js';

@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly database: Database,
    private readonly subscriptions: SubscriptionsRepository,
    private readonly autoSubscriptions: AutoSubscriptionsRepository,
    private readonly webhooks: WebhooksRepository,
    private readonly emitters: EmitterDirectory,
    private readonly config: RoutingConfig,
  ) {}

  async create({ owner_id, emitter_id, listener_id, event_name = '' }: SubscriptionReference): Promise<Subscription> {
    const problems = subscriptionProblems(emitter_id, listener_id, event_name);
    if (problems.length > 0) throw new Invalid(problems);
    // looks up emitters that were created a moment ago in the catalog
    await this.emitters.find([emitter_id, listener_id].filter((id) => !isEmitterPattern(id) && !isId('webhook', id)));
    return this.database.transaction(async (transaction) => {
      await this.holdEmitter(transaction, owner_id, emitter_id);
      await this.holdListener(transaction, owner_id, listener_id);
      return this.subscriptions.create(transaction, owner_id, emitter_id, listener_id, event_name);
    });
  }

  async delete({ owner_id, emitter_id, listener_id, event_name = '' }: SubscriptionReference): Promise<Subscription[]> {
    const problems = subscriptionProblems(emitter_id, listener_id, event_name);
    if (problems.length > 0) throw new Invalid(problems);
    const remove = () => this.subscriptions.delete(owner_id, emitter_id, listener_id, event_name);
    let removed = await remove();
    if (removed.length === 0 && !isEmitterPattern(emitter_id)) {
      // an auto-subscription makes it when the emitter becomes known
      await this.emitters.find([emitter_id]);
      removed = await remove();
    }
    if (removed.length === 0) throw notFound(`subscription of ${listener_id} to ${emitter_id}`, event_name, 'subscriptions');
    return removed;
  }

  /** Those that auto-subscriptions make for new sources are among them. */
  async list({ owner_id, before }: ListSubscriptions): Promise<Subscription[]> {
    // while the catalog does not respond, those that are known are listed
    if (before === undefined) await this.learnNew(owner_id).catch(() => {});
    return this.subscriptions.list(owner_id, before, SUBSCRIPTIONS_PER_REPLY);
  }

  async createAuto({ owner_id, listener_id, event_name = '' }: AutoSubscriptionReference): Promise<AutoSubscription> {
    const problems = autoSubscriptionProblems(listener_id, event_name);
    if (problems.length > 0) throw new Invalid(problems);
    if (!isId('webhook', listener_id)) await this.emitters.find([listener_id]);
    return this.database.transaction(async (transaction) => {
      await this.holdListener(transaction, owner_id, listener_id);
      return this.autoSubscriptions.create(transaction, owner_id, listener_id, event_name, this.config.maxAutoSubscriptions || Infinity);
    });
  }

  async deleteAuto({ owner_id, listener_id, event_name = '' }: AutoSubscriptionReference): Promise<AutoSubscription[]> {
    const problems = autoSubscriptionProblems(listener_id, event_name);
    if (problems.length > 0) throw new Invalid(problems);
    // it covers the sources that were created until now
    await this.learnNew(owner_id);
    const removed = await this.autoSubscriptions.delete(owner_id, listener_id, event_name);
    if (removed.length === 0) throw notFound(`auto-subscription of ${listener_id}`, event_name, 'auto_subscriptions');
    return removed;
  }

  listAuto(ownerId: UserId): Promise<AutoSubscription[]> {
    return this.autoSubscriptions.list(ownerId);
  }

  private async learnNew(ownerId: UserId): Promise<void> {
    if (await this.autoSubscriptions.exist(ownerId)) await this.emitters.learnNew(ownerId);
  }

  /** Throws NotFound unless the emitter is the owner's; it then stays until the transaction ends. */
  private async holdEmitter(transaction: Transaction, ownerId: UserId, id: string): Promise<void> {
    const found = isEmitterPattern(id) ? !isId('user', id) || id === ownerId : await this.emitters.hold(transaction, ownerId, id);
    if (!found) throw new NotFound('emitter', id);
  }

  private async holdListener(transaction: Transaction, ownerId: UserId, id: string): Promise<void> {
    const found = isId('webhook', id)
      ? await this.webhooks.hold(transaction, ownerId, id)
      : await this.emitters.hold(transaction, ownerId, id);
    if (!found) throw new NotFound('listener', id);
  }
}

/** Usually it exists with another event name: `default` and the empty one select the same stream, but are stored as they were sent. */
const notFound = (what: string, eventName: string, list: string): NotFound =>
  new NotFound(`${what} with the event_name ${JSON.stringify(eventName)}`, undefined, `GET /v1/users/me/${list} shows the stored ones`);
