import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiConsumes, ApiOperation } from '@nestjs/swagger';
import {
  type ConnectionId,
  createConnection,
  deleteConnection,
  getConnection,
  listConnections,
  type Page,
  patchConnection,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsNoContent, RespondsWith, RespondsWithPage, Documented, Problems, Takes, MayTake } from '../http/api-docs.js';
import { LargePages } from '../http/large-pages.js';
import { IdPipe } from '../http/id.pipe.js';
import { NewId } from '../idempotency/new-ids.js';
import { MERGE_PATCH_TYPES } from '../http/content-types.js';
import { PageQuery } from '../http/page.dto.js';
import { Connection, CreateConnectionBody, PatchConnectionBody } from './connection.dto.js';

const NEW_EXAMPLES = { token: { summary: 'a token', value: { app: 'slack', name: 'Workspace', credentials: { bot_token: 'xoxb-…' } } } };

const CHANGE_EXAMPLES = {
  token: { summary: 'a new token', value: { credentials: { bot_token: 'xoxb-…' } } },
  name: { summary: 'another name', value: { name: 'Workspace' } },
};

@Documented('connections')
@Controller('v1/connections')
export class ConnectionsController {
  constructor(
    private readonly messages: Messages,
    private readonly pages: LargePages,
  ) {}

  @Post()
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createConnection',
    summary: 'Create a connection',
    description: 'Credentials for an app. A source takes them by `{"authProvisionId": "apn_…"}` as the value of an `app` prop.',
  })
  @Takes(CreateConnectionBody, NEW_EXAMPLES)
  @RespondsWith(Connection)
  @Problems(400, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @NewId('connection') id: ConnectionId,
    @Body() { app, name, credentials }: CreateConnectionBody,
  ): Promise<{ data: Connection }> {
    const command = { id, owner_id, app, name, credentials };
    return { data: await this.messages.request(createConnection, command, { account: owner_id }) };
  }

  @Get()
  @ApiOperation({ operationId: 'listConnections', summary: 'List your connections' })
  @RespondsWithPage(Connection)
  @Problems(400)
  list(@OwnerId() owner_id: UserId, @Query() page: PageQuery): Promise<Page<Connection>> {
    return this.pages.read(owner_id, page, (part) => this.messages.request(listConnections, { ...part, owner_id }, { account: owner_id }));
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getConnection', summary: 'Get a connection' })
  @RespondsWith(Connection)
  @Problems(404)
  async get(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('connection')) id: ConnectionId): Promise<{ data: Connection }> {
    return { data: await this.messages.request(getConnection, { owner_id, id }, { account: owner_id }) };
  }

  @Patch(':id')
  @ApiConsumes(...MERGE_PATCH_TYPES)
  @ApiOperation({
    operationId: 'patchConnection',
    summary: 'Change parts of a connection',
    description: 'Credentials are merged by name. The sources that use the connection have them at their next run.',
  })
  @MayTake(PatchConnectionBody, CHANGE_EXAMPLES)
  @RespondsWith(Connection)
  @Problems(400, 404, 413, 415)
  async patch(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('connection')) id: ConnectionId,
    @Body() { name, credentials }: PatchConnectionBody,
  ): Promise<{ data: Connection }> {
    return { data: await this.messages.request(patchConnection, { owner_id, id, name, credentials }, { account: owner_id }) };
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'deleteConnection',
    summary: 'Delete a connection',
    description: 'Refused with 409 while a source uses it.',
  })
  @RespondsNoContent('The connection has been deleted.')
  @Problems(404, 409)
  async delete(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('connection')) id: ConnectionId): Promise<void> {
    await this.messages.request(deleteConnection, { owner_id, id }, { account: owner_id });
  }
}
