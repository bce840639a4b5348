import { Body, Controller, Get, HttpCode, Injectable, Param, type PipeTransform, Post } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation } from '@nestjs/swagger';
import { type ComponentId, createComponent, getComponent, getRegisteredComponent, NotFound, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { Documented, Problems, RespondsWith, Takes } from '../http/api-docs.js';
import { rejectLast } from '../http/id.pipe.js';
import { CODE_TIMEOUT_MS } from '../http/longest-request.js';
import { REPEATABLE } from '../idempotency/idempotent-posts.js';
import { IsRepeat, NewId } from '../idempotency/new-ids.js';
import { SLOW } from '../limits/request-queues.js';
import { CodeSource, Component } from './component.dto.js';

/** A component key or id in a path. One with a NUL character does not exist: PostgreSQL cannot store it, nor compare with it. */
@Injectable()
export class KeyPipe implements PipeTransform<string> {
  async transform(value: string): Promise<string> {
    if (value.includes('\0')) await rejectLast(new NotFound('component', value));
    return value;
  }
}

const CODE_EXAMPLES = {
  byCode: {
    summary: 'by code',
    value: { component_code: "export default { name: 'Hello', version: '0.0.1', run() { this.$emit('hello'); } };" },
  },
  byUrl: { summary: 'by URL', value: { component_url: 'https://github.com/example/components/blob/main/price-watch.mjs' } },
};

@Documented('components')
@Controller('v1/components')
export class ComponentsController {
  constructor(private readonly messages: Messages) {}

  @Post()
  @RouteConfig({ ...SLOW, ...REPEATABLE })
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createComponent',
    summary: 'Create a component',
    description:
      'From component_code, or from the code at component_url. If both are given, component_code is used and the URL is only stored.',
  })
  @Takes(CodeSource, CODE_EXAMPLES)
  @RespondsWith(Component)
  @Problems(400, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @NewId('component') id: ComponentId,
    @IsRepeat() isRepeat: boolean,
    @Body() { component_code, component_url }: CodeSource,
  ): Promise<{ data: Component }> {
    // components are never changed or deleted
    if (isRepeat) return this.get(owner_id, id);
    const command = { id, owner_id, component_code, component_url };
    return { data: await this.messages.request(createComponent, command, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Get('registry/:key')
  @ApiOperation({ operationId: 'getRegisteredComponent', summary: 'Get a registered component by key' })
  @RespondsWith(Component)
  @Problems(404)
  async registered(@OwnerId() owner: UserId, @Param('key', KeyPipe) key: string): Promise<{ data: Component }> {
    return { data: await this.messages.request(getRegisteredComponent, { key }, { account: owner }) };
  }

  @Get(':keyOrId')
  @ApiOperation({ operationId: 'getComponent', summary: 'Get one of your components by id, or the newest version by key' })
  @RespondsWith(Component)
  @Problems(404)
  async get(@OwnerId() owner_id: UserId, @Param('keyOrId', KeyPipe) key_or_id: string): Promise<{ data: Component }> {
    return { data: await this.messages.request(getComponent, { owner_id, key_or_id }, { account: owner_id }) };
  }
}
