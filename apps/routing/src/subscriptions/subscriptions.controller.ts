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
  listSubscriptions,
  OwnerReference,
  type Subscription,
  SubscriptionReference,
} from '#contracts';
import { Answers } from '#messaging';
import { SubscriptionsService } from './subscriptions.service.js';

@Controller()
export class SubscriptionsController {
  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Answers(createSubscription)
  create(@Payload() command: SubscriptionReference): Promise<Subscription> {
    return this.subscriptions.create(command);
  }

  @Answers(deleteSubscription)
  delete(@Payload() command: SubscriptionReference): Promise<Subscription[]> {
    return this.subscriptions.delete(command);
  }

  @Answers(listSubscriptions)
  list(@Payload() { owner_id }: OwnerReference): Promise<Subscription[]> {
    return this.subscriptions.list(owner_id);
  }
}

@Controller()
export class AutoSubscriptionsController {
  constructor(private readonly subscriptions: SubscriptionsService) {}

  @Answers(createAutoSubscription)
  create(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription> {
    return this.subscriptions.createAuto(command);
  }

  @Answers(deleteAutoSubscription)
  delete(@Payload() command: AutoSubscriptionReference): Promise<AutoSubscription[]> {
    return this.subscriptions.deleteAuto(command);
  }

  @Answers(listAutoSubscriptions)
  list(@Payload() { owner_id }: OwnerReference): Promise<AutoSubscription[]> {
    return this.subscriptions.listAuto(owner_id);
  }
}
