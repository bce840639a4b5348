import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Query } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiConsumes, ApiOperation, ApiQuery } from '@nestjs/swagger';
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  getWebhookSecret,
  listWebhooks,
  type Page,
  rotateWebhookSecret,
  updateWebhook,
  type UserId,
  type WebhookId,
} from '#contracts';
import { Messages } from '#messaging';
import { type Caller, mayReadSecrets, Me, OwnerId } from '../accounts/account.decorator.js';
import { RespondsNoContent, RespondsWith, RespondsWithPage, Documented, Problems, MayTake } from '../http/api-docs.js';
import { ExternalIdQuery } from '../http/page.dto.js';
import { IdPipe } from '../http/id.pipe.js';
import { NewId, NewKsuid } from '../idempotency/new-ids.js';
import { MERGE_PATCH_TYPES } from '../http/content-types.js';
import { SHOWS_SECRET } from '../http/scopes.js';
import { Parameters } from '../http/request.pipe.js';
import { NewWebhookParameters, RotatedWebhookSecret, UpdateWebhookBody, Webhook, WebhookSecret } from './webhook.dto.js';

const CHANGE_EXAMPLES = {
  url: { summary: 'a new address', value: { url: 'https://example.com/hooks' } },
  pause: { summary: 'pause', value: { active: false } },
  limit: { summary: 'a limit, and no name', value: { rate_limit: 20, name: null } },
};

@Documented('webhooks')
@Controller('v1')
export class WebhooksController {
  constructor(private readonly messages: Messages) {}

  @Post('webhooks')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createWebhook',
    summary: 'Create a webhook',
    description:
      'The parameters can also be fields of a JSON body; the query wins. Beyond `SLUICE_MAX_WEBHOOKS` webhooks of the account: 409.',
  })
  @ApiQuery({ type: NewWebhookParameters })
  @RespondsWith(Webhook)
  @Problems(400, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @NewId('webhook') id: WebhookId,
    @Parameters(NewWebhookParameters) { url, name, description, rate_limit, external_id }: NewWebhookParameters,
  ): Promise<{ data: Webhook }> {
    const command = { id, owner_id, url, name, description, rate_limit, external_id };
    return { data: await this.messages.request(createWebhook, command, { account: owner_id }) };
  }

  @Get('users/me/webhooks')
  @ApiOperation({ operationId: 'listWebhooks', summary: 'List your webhooks' })
  @RespondsWithPage(Webhook)
  @Problems(400)
  async list(@OwnerId() owner_id: UserId, @Me() caller: Caller, @Query() page: ExternalIdQuery): Promise<Page<Webhook>> {
    const { data, ...rest } = await this.messages.request(listWebhooks, { ...page, owner_id }, { account: owner_id });
    return { ...rest, data: data.map((webhook) => shownTo(caller, webhook)) };
  }

  @Get('webhooks/:id')
  @ApiOperation({ operationId: 'getWebhook', summary: 'Get a webhook' })
  @RespondsWith(Webhook)
  @Problems(404)
  async get(
    @OwnerId() owner_id: UserId,
    @Me() caller: Caller,
    @Param('id', new IdPipe('webhook')) id: WebhookId,
  ): Promise<{ data: Webhook }> {
    return { data: shownTo(caller, await this.messages.request(getWebhook, { owner_id, id }, { account: owner_id })) };
  }

  @Put('webhooks/:id')
  @ApiOperation({
    operationId: 'updateWebhook',
    summary: 'Update a webhook',
    description: 'Omitted fields keep their values; null clears the name, the description or the external id.',
  })
  @MayTake(UpdateWebhookBody, CHANGE_EXAMPLES)
  @RespondsWith(Webhook)
  @Problems(400, 404, 409, 413, 415)
  async update(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('webhook')) id: WebhookId,
    @Body() body: UpdateWebhookBody,
  ): Promise<{ data: Webhook }> {
    return { data: await this.messages.request(updateWebhook, { ...body, owner_id, id }, { account: owner_id }) };
  }

  @Patch('webhooks/:id')
  @ApiConsumes(...MERGE_PATCH_TYPES)
  @ApiOperation({ operationId: 'patchWebhook', summary: 'Change parts of a webhook', description: 'Does the same as PUT.' })
  @MayTake(UpdateWebhookBody, CHANGE_EXAMPLES)
  @RespondsWith(Webhook)
  @Problems(400, 404, 409, 413, 415)
  patch(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('webhook')) id: WebhookId,
    @Body() body: UpdateWebhookBody,
  ): Promise<{ data: Webhook }> {
    return this.update(owner, id, body);
  }

  @Delete('webhooks/:id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'deleteWebhook',
    summary: 'Delete a webhook',
    description: 'Also deletes its subscriptions and its pending deliveries.',
  })
  @RespondsNoContent('The webhook has been deleted.')
  @Problems(404)
  async delete(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('webhook')) id: WebhookId): Promise<void> {
    await this.messages.request(deleteWebhook, { owner_id, id }, { account: owner_id });
  }

  @Get('webhooks/:id/secret')
  @RouteConfig(SHOWS_SECRET)
  @ApiOperation({ operationId: 'getWebhookSecret', summary: 'Get the signing secret of a webhook' })
  @RespondsWith(WebhookSecret)
  @Problems(403, 404)
  async secret(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('webhook')) id: WebhookId): Promise<{ data: WebhookSecret }> {
    return { data: await this.messages.request(getWebhookSecret, { owner_id, id }, { account: owner_id }) };
  }

  @Post('webhooks/:id/secret/rotate')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'rotateWebhookSecret',
    summary: 'Rotate the signing secret',
    description:
      'For 24 hours, deliveries are also signed with the old secret. If there are more than five old secrets, the oldest ones no longer sign.',
  })
  @RespondsWith(RotatedWebhookSecret)
  @Problems(404, 409, 413, 415, 422)
  async rotate(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('webhook')) id: WebhookId,
    @NewKsuid() rotation_id: string,
  ): Promise<{ data: RotatedWebhookSecret }> {
    return { data: await this.messages.request(rotateWebhookSecret, { owner_id, id, rotation_id }, { account: owner_id }) };
  }
}

/** A caller that may not read secrets gets the URL without its user name and password. */
function shownTo(caller: Caller, webhook: Webhook): Webhook {
  if (mayReadSecrets(caller)) return webhook;
  const url = new URL(webhook.url);
  const hasCredentials = url.username !== '' || url.password !== '';
  return hasCredentials ? { ...webhook, url: Object.assign(url, { username: '', password: '' }).href } : webhook;
}
