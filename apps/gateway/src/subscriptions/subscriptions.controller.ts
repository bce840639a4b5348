import { Controller, Delete, Get, HttpCode, Post } from '@nestjs/common';
import { ApiOperation, ApiQuery } from '@nestjs/swagger';
import {
  createAutoSubscription,
  createSubscription,
  deleteAutoSubscription,
  deleteSubscription,
  listAutoSubscriptions,
  listSubscriptions,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithList, RespondsWith, Documented, Problems } from '../http/api-docs.js';
import { Parameters } from '../http/request.pipe.js';
import { AutoSubscription, AutoSubscriptionParameters, Subscription, SubscriptionParameters } from './subscription.dto.js';

@Documented('subscriptions')
@Controller('v1')
export class SubscriptionsController {
  constructor(private readonly messages: Messages) {}

  @Post('subscriptions')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createSubscription',
    summary: 'Subscribe a listener to an emitter',
    description: 'Idempotent: returns the existing subscription.',
  })
  @ApiQuery({ type: SubscriptionParameters })
  @RespondsWithList(Subscription)
  @Problems(400, 404, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @Parameters(SubscriptionParameters) { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: [await this.messages.request(createSubscription, command, { key: owner_id })] };
  }

  @Delete('subscriptions')
  @ApiOperation({
    operationId: 'deleteSubscription',
    summary: 'Delete a subscription',
    description: 'event_name must be the stored one; omitted and empty are equivalent. Returns the deleted subscriptions.',
  })
  @ApiQuery({ type: SubscriptionParameters })
  @RespondsWithList(Subscription)
  @Problems(400, 404, 413, 415)
  async delete(
    @OwnerId() owner_id: UserId,
    @Parameters(SubscriptionParameters) { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: await this.messages.request(deleteSubscription, command, { key: owner_id }) };
  }

  @Get('users/me/subscriptions')
  @ApiOperation({ operationId: 'listSubscriptions', summary: 'List your subscriptions' })
  @RespondsWithList(Subscription)
  async list(@OwnerId() owner_id: UserId): Promise<{ data: Subscription[] }> {
    return { data: await this.messages.request(listSubscriptions, { owner_id }, { key: owner_id }) };
  }

  @Post('auto_subscriptions')
  @HttpCode(200)
  @ApiOperation({ operationId: 'createAutoSubscription', summary: 'Subscribe a listener to every emitter created later' })
  @ApiQuery({ type: AutoSubscriptionParameters })
  @RespondsWith(AutoSubscription)
  @Problems(400, 404, 409, 413, 415, 422)
  async createAuto(
    @OwnerId() owner_id: UserId,
    @Parameters(AutoSubscriptionParameters) { listener_id, event_name }: AutoSubscriptionParameters,
  ): Promise<{ data: AutoSubscription }> {
    return { data: await this.messages.request(createAutoSubscription, { owner_id, listener_id, event_name }, { key: owner_id }) };
  }

  @Delete('auto_subscriptions')
  @ApiOperation({
    operationId: 'deleteAutoSubscription',
    summary: 'Delete an auto-subscription',
    description: 'The subscriptions that it created are kept.',
  })
  @ApiQuery({ type: AutoSubscriptionParameters })
  @RespondsWithList(AutoSubscription)
  @Problems(400, 404, 413, 415)
  async deleteAuto(
    @OwnerId() owner_id: UserId,
    @Parameters(AutoSubscriptionParameters) { listener_id, event_name }: AutoSubscriptionParameters,
  ): Promise<{ data: AutoSubscription[] }> {
    return { data: await this.messages.request(deleteAutoSubscription, { owner_id, listener_id, event_name }, { key: owner_id }) };
  }

  @Get('users/me/auto_subscriptions')
  @ApiOperation({ operationId: 'listAutoSubscriptions', summary: 'List your auto-subscriptions' })
  @RespondsWithList(AutoSubscription)
  async listAuto(@OwnerId() owner_id: UserId): Promise<{ data: AutoSubscription[] }> {
    return { data: await this.messages.request(listAutoSubscriptions, { owner_id }, { key: owner_id }) };
  }
}
