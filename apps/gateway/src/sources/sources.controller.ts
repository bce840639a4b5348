import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import {
  createSource,
  deleteSource,
  getSource,
  listSources,
  newId,
  type Page,
  PageRequest,
  type Source,
  type SourceId,
  updateSource,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../auth/account.decorator.js';
import { IdPipe } from '../http/id.pipe.js';
import { CreateSourceBody, UpdateSourceBody } from './source-bodies.js';

/** Fetching and inspecting code takes longer than a plain request may. */
const CODE_TIMEOUT_MS = 30_000;

@Controller('v1')
export class SourcesController {
  constructor(private readonly messages: Messages) {}

  @Get('users/me/sources')
  list(@OwnerId() owner_id: UserId, @Query() page: PageRequest): Promise<Page<Source>> {
    return this.messages.request(listSources, { ...page, owner_id }, { key: owner_id });
  }

  @Post('sources')
  @HttpCode(200)
  async create(@OwnerId() owner_id: UserId, @Body() body: CreateSourceBody): Promise<{ data: Source }> {
    const command = { ...body, owner_id, id: newId('source'), new_component_id: newId('component') };
    return { data: await this.messages.request(createSource, command, { key: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Get('sources/:id')
  async get(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('source')) id: SourceId): Promise<{ data: Source }> {
    return { data: await this.messages.request(getSource, { owner_id, id }, { key: owner_id }) };
  }

  @Put('sources/:id')
  async update(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Body() body: UpdateSourceBody,
  ): Promise<{ data: Source }> {
    const command = { ...body, owner_id, id, new_component_id: newId('component') };
    return { data: await this.messages.request(updateSource, command, { key: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Delete('sources/:id')
  @HttpCode(204)
  async delete(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('source')) id: SourceId): Promise<void> {
    await this.messages.request(deleteSource, { owner_id, id }, { key: owner_id });
  }
}
