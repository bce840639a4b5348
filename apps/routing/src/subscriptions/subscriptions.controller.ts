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
} from '#contracts';
import { Handles } from '#messaging';
import { SubscriptionsService } from './subscriptions.service.js';

@Controller()
export class SubscriptionsController {
  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Handles(createSubscription)
  create(@Payload() command: SubscriptionReference): Promise<Subscription> {
    return this.subscriptions.create(command);
  }

  @Handles(deleteSubscription)
  delete(@Payload() command: SubscriptionReference): Promise<Subscription[]> {
    return this.subscriptions.delete(command);
  }

  @Handles(listSubscriptions)
  list(@Payload() query: ListSubscriptions): Promise<Subscription[]> {
    return this.subscriptions.list(query);
  }
}

@Controller()
export class AutoSubscriptionsController {
  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Handles(createAutoSubscription)
  create(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription> {
    return this.subscriptions.createAuto(command);
  }

  @Handles(deleteAutoSubscription)
  delete(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription[]> {
    return this.subscriptions.deleteAuto(command);
  }

  @Handles(listAutoSubscriptions)
  list(@Payload() { owner_id }: OwnerReference): Promise<AutoSubscription[]> {
    return this.subscriptions.listAuto(owner_id);
  }
}
