import type { Readable } from 'node:stream';
import { Controller, Delete, Get, Header, HttpCode, Post, Req } from '@nestjs/common';
import { ApiOperation, ApiQuery } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import {
  createAutoSubscription,
  createSubscription,
  deleteAutoSubscription,
  deleteSubscription,
  listAutoSubscriptions,
  listSubscriptions,
  SUBSCRIPTIONS_PER_REPLY,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithList, RespondsWith, Documented, Problems } from '../http/api-docs.js';
import { requestedFields } from '../http/fields.js';
import { JSON_TYPE, listBody } from '../http/list-body.js';
import { Parameters } from '../http/request.pipe.js';
import {
  AutoSubscription,
  AutoSubscriptionParameters,
  NewAutoSubscription,
  Subscription,
  SubscriptionParameters,
} from './subscription.dto.js';

@Documented('subscriptions')
@Controller('v1')
export class SubscriptionsController {
  constructor(private readonly messages: Messages) {}

  @Post('subscriptions')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createSubscription',
    summary: 'Subscribe a listener to an emitter',
    description: 'Idempotent: returns the existing subscription. The parameters can also be fields of a JSON body; the query wins.',
  })
  @ApiQuery({ type: SubscriptionParameters })
  @RespondsWithList(Subscription)
  @Problems(400, 404, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @Parameters(SubscriptionParameters) { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: [await this.messages.request(createSubscription, command, { account: owner_id })] };
  }

  @Delete('subscriptions')
  @ApiOperation({
    operationId: 'deleteSubscription',
    summary: 'Delete a subscription',
    description:
      'event_name must be the stored one; omitted and empty are equivalent. Returns the deleted subscriptions. The listener still gets the events that were emitted before. The parameters can also be fields of a JSON body; the query wins.',
  })
  @ApiQuery({ type: SubscriptionParameters })
  @RespondsWithList(Subscription)
  @Problems(400, 404, 413, 415)
  async delete(
    @OwnerId() owner_id: UserId,
    @Parameters(SubscriptionParameters) { emitter_id, listener_id, event_name }: SubscriptionParameters,
  ): Promise<{ data: Subscription[] }> {
    const command = { owner_id, emitter_id, listener_id, event_name: event_name ?? '' };
    return { data: await this.messages.request(deleteSubscription, command, { account: owner_id }) };
  }

  @Get('users/me/subscriptions')
  @ApiOperation({ operationId: 'listSubscriptions', summary: 'List your subscriptions' })
  @Header('content-type', JSON_TYPE)
  @RespondsWithList(Subscription)
  list(@OwnerId() owner_id: UserId, @Req() request: FastifyRequest): Promise<string | Readable> {
    return listBody(this.all(owner_id), requestedFields(request));
  }

  @Post('auto_subscriptions')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createAutoSubscription',
    summary: 'Subscribe a listener to every emitter created later',
    description:
      'The parameters can also be fields of a JSON body; the query wins. Beyond `SLUICE_MAX_AUTO_SUBSCRIPTIONS` auto-subscriptions of the account: 409.',
  })
  @ApiQuery({ type: NewAutoSubscription })
  @RespondsWith(AutoSubscription)
  @Problems(400, 404, 409, 413, 415, 422)
  async createAuto(
    @OwnerId() owner_id: UserId,
    @Parameters(NewAutoSubscription) { listener_id, event_name }: NewAutoSubscription,
  ): Promise<{ data: AutoSubscription }> {
    return { data: await this.messages.request(createAutoSubscription, { owner_id, listener_id, event_name }, { account: owner_id }) };
  }

  @Delete('auto_subscriptions')
  @ApiOperation({
    operationId: 'deleteAutoSubscription',
    summary: 'Delete an auto-subscription',
    description: 'The subscriptions that it created are kept. The parameters can also be fields of a JSON body; the query wins.',
  })
  @ApiQuery({ type: AutoSubscriptionParameters })
  @RespondsWithList(AutoSubscription)
  @Problems(400, 404, 413, 415)
  async deleteAuto(
    @OwnerId() owner_id: UserId,
    @Parameters(AutoSubscriptionParameters) { listener_id, event_name }: AutoSubscriptionParameters,
  ): Promise<{ data: AutoSubscription[] }> {
    return { data: await this.messages.request(deleteAutoSubscription, { owner_id, listener_id, event_name }, { account: owner_id }) };
  }

  @Get('users/me/auto_subscriptions')
  @ApiOperation({ operationId: 'listAutoSubscriptions', summary: 'List your auto-subscriptions' })
  @RespondsWithList(AutoSubscription)
  async listAuto(@OwnerId() owner_id: UserId): Promise<{ data: AutoSubscription[] }> {
    return { data: await this.messages.request(listAutoSubscriptions, { owner_id }, { account: owner_id }) };
  }

  private async *all(owner_id: UserId): AsyncGenerator<Subscription[]> {
    for (let before: Subscription['id'] | undefined; ;) {
      const chunk: Subscription[] = await this.messages.request(listSubscriptions, { owner_id, before }, { account: owner_id });
      // a routing service of an earlier version returns all of them each time
      if (before !== undefined && chunk[0] && chunk[0].id >= before) return;
      yield chunk;
      if (chunk.length < SUBSCRIPTIONS_PER_REPLY) return;
      before = chunk.at(-1)?.id;
    }
  }
}
