import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  type AutoSubscription,
  AutoSubscriptionReference,
  createAutoSubscription,
  deleteAutoSubscription,
  listAutoSubscriptions,
  OwnerReference,
} from '#contracts';
import { Answers } from '#messaging';
import { SubscriptionsService } from './subscriptions.service.js';

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
