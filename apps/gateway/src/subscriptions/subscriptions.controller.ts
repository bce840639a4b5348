import { Controller, Delete, Get, HttpCode, Post } from '@nestjs/common';
import { createSubscription, deleteSubscription, listSubscriptions, type Subscription, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../auth/account.decorator.js';
import { Parameters } from '../http/parameters.decorator.js';
import { SubscriptionParameters } from './subscription-parameters.js';

@Controller('v1')
export class SubscriptionsController {
  constructor(private readonly messages: Messages) {}

  @Post('subscriptions')
  @HttpCode(200)
  async create(
    @OwnerId() owner_id: UserId,
    @Parameters() { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: [await this.messages.request(createSubscription, command, { key: owner_id })] };
  }

  @Delete('subscriptions')
  async delete(
    @OwnerId() owner_id: UserId,
    @Parameters() { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: await this.messages.request(deleteSubscription, command, { key: owner_id }) };
  }

  @Get('users/me/subscriptions')
  async list(@OwnerId() owner_id: UserId): Promise<{ data: Subscription[] }> {
    return { data: await this.messages.request(listSubscriptions, { owner_id }, { key: owner_id }) };
  }
}
