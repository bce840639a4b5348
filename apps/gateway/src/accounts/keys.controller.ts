import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation } from '@nestjs/swagger';
import { type Id, type Page, type UserId } from '#contracts';
import { OwnerId } from './account.decorator.js';
import { RespondsNoContent, RespondsWith, RespondsWithPage, Documented, Problems, MayTake } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { Held, NewId } from '../idempotency/new-ids.js';
import { PageQuery } from '../http/page.dto.js';
import type { HeldKey } from '../idempotency/idempotency.repository.js';
import { SECRET_RESPONSE } from '../idempotency/idempotent-posts.js';
import { AccountsService } from './accounts.service.js';
import { ApiKey, CreateKeyBody, CreatedApiKey } from './api-key.dto.js';

const KEY_EXAMPLES = {
  read: { summary: 'a key that may only read', value: { name: 'dashboard', scope: 'read' } },
  write: { summary: 'a key that may do everything', value: { name: 'ci' } },
};

@Documented('keys')
@Controller('v1/keys')
export class KeysController {
  constructor(private readonly accounts: AccountsService) {}

  @Get()
  @ApiOperation({
    operationId: 'listKeys',
    summary: 'List the API keys of your account',
    description: 'Also those that the operator has issued; revoked keys are omitted.',
  })
  @RespondsWithPage(ApiKey)
  @Problems(400)
  list(@OwnerId() owner: UserId, @Query() page: PageQuery): Promise<Page<ApiKey>> {
    return this.accounts.pageOfKeys(owner, page);
  }

  @Post()
  @HttpCode(200)
  @RouteConfig(SECRET_RESPONSE)
  @ApiOperation({
    operationId: 'createKey',
    summary: 'Create an API key',
    description: 'Only this response contains the key itself. An account has at most 100 keys: 409.',
  })
  @MayTake(CreateKeyBody, KEY_EXAMPLES)
  @RespondsWith(CreatedApiKey)
  @Problems(400, 409, 413, 415, 422)
  async create(
    @OwnerId() owner: UserId,
    @NewId('apiKey') id: Id<'apiKey'>,
    @Held() held: HeldKey | undefined,
    @Body() body: CreateKeyBody,
  ): Promise<{ data: CreatedApiKey }> {
    return { data: await this.accounts.issueKey(owner, body, id, held) };
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'deleteKey',
    summary: 'Revoke an API key',
    description:
      'It stops working at once, even if it authenticates this request. Other requests with this key whose bodies are still arriving return 401. Live streams that it has opened end within 30 seconds, by default within 15.',
  })
  @RespondsNoContent('The key has been revoked.')
  @Problems(404)
  async delete(@OwnerId() owner: UserId, @Param('id', new IdPipe('apiKey')) id: Id<'apiKey'>): Promise<void> {
    await this.accounts.revokeKeyOf(owner, id);
  }
}
