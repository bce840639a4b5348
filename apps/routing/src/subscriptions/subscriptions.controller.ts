import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  createSubscription,
  deleteSubscription,
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
