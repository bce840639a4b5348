import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type AutoSubscription,
  AutoSubscriptionReference,
  createAutoSubscription,
  createSubscription,
  deleteAutoSubscription,
  deleteSubscription,
  listAutoSubscriptions,
  ListSubscriptions,
  listSubscriptions,
  OwnerReference,
  type Subscription,
  SubscriptionReference,
  type UserId,
} from '#contracts';
import { QueuePerKey } from '#limits';
import { Handles } from '#messaging';
import { SubscriptionsService } from './subscriptions.service.js';

/** Commands of one account that proceed at a time: each has a connection to the database, also while it waits for the deletion of what it names. */
const AT_ONCE = 4;
const TOO_MANY = 'too many changes of subscriptions of this account are waiting';

@Controller()
export class SubscriptionsController {
  private readonly turns = new QueuePerKey<UserId>(() => AT_ONCE);

  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Handles(createSubscription)
  create(@Payload() command: SubscriptionReference): Promise<Subscription> {
    return this.turns.run(command.owner_id, TOO_MANY, () => this.subscriptions.create(command));
  }

  @Handles(deleteSubscription)
  delete(@Payload() command: SubscriptionReference): Promise<Subscription[]> {
    return this.turns.run(command.owner_id, TOO_MANY, () => this.subscriptions.delete(command));
  }

  @Handles(listSubscriptions)
  list(@Payload() query: ListSubscriptions): Promise<Subscription[]> {
    return this.subscriptions.list(query);
  }
}

@Controller()
export class AutoSubscriptionsController {
  private readonly turns = new QueuePerKey<UserId>(() => AT_ONCE);

  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Handles(createAutoSubscription)
  create(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription> {
    return this.turns.run(command.owner_id, TOO_MANY, () => this.subscriptions.createAuto(command));
  }

  @Handles(deleteAutoSubscription)
  delete(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription[]> {
    return this.turns.run(command.owner_id, TOO_MANY, () => this.subscriptions.deleteAuto(command));
  }

  @Handles(listAutoSubscriptions)
  list(@Payload() { owner_id }: OwnerReference): Promise<AutoSubscription[]> {
    return this.subscriptions.listAuto(owner_id);
  }
}
