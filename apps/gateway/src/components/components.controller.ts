import { Body, Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import { CodeSource, type Component, createComponent, getComponent, getRegisteredComponent, newId, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../auth/account.decorator.js';

@Controller('v1/components')
export class ComponentsController {
  constructor(private readonly messages: Messages) {}

  @Post()
  @HttpCode(200)
  async create(@OwnerId() owner_id: UserId, @Body() code: CodeSource): Promise<{ data: Component }> {
    const { component_code, component_url } = code;
    const command = { id: newId('component'), owner_id, component_code, component_url };
    return { data: await this.messages.request(createComponent, command, { key: owner_id, timeoutMs: 30_000 }) };
  }

  @Get('registry/:key')
  async registered(@Param('key') key: string): Promise<{ data: Component }> {
    return { data: await this.messages.request(getRegisteredComponent, { key }, { key }) };
  }

  @Get(':keyOrId')
  async get(@OwnerId() owner_id: UserId, @Param('keyOrId') key_or_id: string): Promise<{ data: Component }> {
    return { data: await this.messages.request(getComponent, { owner_id, key_or_id }, { key: owner_id }) };
  }
}
