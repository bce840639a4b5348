import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation, ApiQuery, getSchemaPath } from '@nestjs/swagger';
import { type Id, listDeliveries, type Page, recoverDeliveries, retryDelivery, testWebhook, type UserId, type WebhookId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsAccepted, RespondsWith, RespondsWithPage, Documented, Problems } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { DeliveryAttempt, recoveredSince, RecoverParameters, WebhookDelivery } from './delivery.dto.js';
import { PageQuery } from '../http/page.dto.js';
import { Parameters } from '../http/request.pipe.js';
import { SLOW } from '../limits/request-queues.js';

/** A test takes as long as its attempt, and a retry may have to find its event in Kafka. With a longer SLUICE_ATTEMPT_TIMEOUT, a test may end without its outcome. */
const REPLY_TIMEOUT_MS = 30_000;

@Documented('webhooks')
@Controller('v1/webhooks/:id')
export class DeliveriesController {
  constructor(private readonly messages: Messages) {}

  @Get('deliveries')
  @ApiOperation({
    operationId: 'listDeliveries',
    summary: 'List the last deliveries to a webhook, with their attempts',
    description:
      'The last 100 that succeeded, those that are pending, and failed ones for `SLUICE_FAILED_DELIVERIES_KEPT` (7 days). A crash can remove deliveries that succeeded in the two seconds before it from the list; they are not delivered again.',
  })
  @RespondsWithPage(WebhookDelivery)
  @Problems(400, 404)
  list(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('webhook')) webhook_id: WebhookId,
    @Query() page: PageQuery,
  ): Promise<Page<WebhookDelivery>> {
    return this.messages.request(listDeliveries, { ...page, owner_id, webhook_id }, { account: owner_id });
  }

  @Post('deliveries/:deliveryId/retry')
  @RouteConfig(SLOW)
  @HttpCode(202)
  @ApiOperation({
    operationId: 'retryDelivery',
    summary: 'Retry a delivery now',
    description:
      'You can also retry a delivery that succeeded, while its event is still in the topic or the event store. The `webhook-id` stays the same. If the webhook is inactive, the delivery waits until it is active. Returns 409 if the event is gone.',
  })
  @RespondsAccepted('AcceptedRetry', 'The delivery is due now.', { $ref: getSchemaPath(WebhookDelivery) })
  @Problems(404, 409, 413, 415, 422)
  async retry(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('webhook')) webhook_id: WebhookId,
    @Param('deliveryId', new IdPipe('delivery')) id: Id<'delivery'>,
  ): Promise<{ data: WebhookDelivery }> {
    return {
      data: await this.messages.request(retryDelivery, { owner_id, webhook_id, id }, { account: owner_id, timeoutMs: REPLY_TIMEOUT_MS }),
    };
  }

  @Post('test')
  @RouteConfig(SLOW)
  @HttpCode(200)
  @ApiOperation({
    operationId: 'testWebhook',
    summary: 'Deliver a sample event at once',
    description:
      'Returns the attempt. It is not listed and never retried; the webhook may be inactive. Returns 504 if the attempt takes longer than 30 seconds, which only a longer `SLUICE_ATTEMPT_TIMEOUT` allows.',
  })
  @RespondsWith(DeliveryAttempt)
  @Problems(404, 409, 413, 415, 422)
  async test(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('webhook')) id: WebhookId): Promise<{ data: DeliveryAttempt }> {
    return { data: await this.messages.request(testWebhook, { owner_id, id }, { account: owner_id, timeoutMs: REPLY_TIMEOUT_MS }) };
  }

  @Post('recover')
  @HttpCode(202)
  @ApiOperation({
    operationId: 'recoverDeliveries',
    summary: 'Retry all deliveries that have failed since a given time',
    description: 'If the webhook is inactive, they wait until it is active. `since` can also be a field of a JSON body; the query wins.',
  })
  @ApiQuery({ type: RecoverParameters })
  @RespondsAccepted('AcceptedRecovery', 'The number of deliveries that are now due.', {
    type: 'object',
    required: ['count'],
    properties: { count: { type: 'integer' } },
  })
  @Problems(400, 404, 409, 413, 415, 422)
  async recover(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('webhook')) webhook_id: WebhookId,
    @Parameters(RecoverParameters) parameters: RecoverParameters,
  ): Promise<{ data: { count: number } }> {
    const command = { owner_id, webhook_id, since_ms: recoveredSince(parameters) };
    return { data: await this.messages.request(recoverDeliveries, command, { account: owner_id }) };
  }
}
