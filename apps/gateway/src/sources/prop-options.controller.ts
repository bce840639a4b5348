import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation, ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsInt, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import { componentOptions, getComponent, type PropOptions, type SourceId, sourceOptions, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { KeyPipe } from '../components/components.controller.js';
import { RespondsWith, Documented, Problems, MayTake } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { CODE_TIMEOUT_MS } from '../http/longest-request.js';
import { REPEATABLE } from '../idempotency/idempotent-posts.js';
import { SLOW } from '../limits/request-queues.js';

const MOST_PAGES = 1_000_000;
const PAGE = `page must be an integer from 0 to ${MOST_PAGES}`;

/** The state that `options()` of a component keeps between pages. */
const CONTEXT = { anyOf: [{ title: 'OptionsContext', type: 'object', additionalProperties: true }, { type: 'null' }] };

class OptionsBody {
  @ApiPropertyOptional({
    type: 'object',
    additionalProperties: true,
    description: 'Values of other props that the options depend on. Of a source, the others have their configured values.',
  })
  @IsOptional()
  @IsObject({ message: 'configured_props must be an object' })
  configured_props?: Record<string, unknown>;

  @ApiPropertyOptional({ type: String, nullable: true, description: 'What the user is searching for.' })
  @IsOptional()
  @IsString({ message: 'query must be a string' })
  query?: string | null;

  @ApiPropertyOptional({ type: 'integer', minimum: 0, maximum: MOST_PAGES, description: 'The page, starting at 0 (the default).' })
  @IsOptional()
  @IsInt({ message: PAGE })
  @Min(0, { message: PAGE })
  @Max(MOST_PAGES, { message: PAGE })
  page?: number | null;

  @ApiPropertyOptional({ ...CONTEXT, description: 'The `context` that the request for the previous page returned.', example: null })
  @IsOptional()
  @IsObject({ message: 'prev_context must be an object' })
  prev_context?: Record<string, unknown> | null;
}

class Options implements PropOptions {
  @ApiProperty({
    type: 'array',
    items: {},
    description: 'Objects `{label, value}`; a fixed list of the component is returned as it is.',
    example: [{ label: 'Main', value: 'main' }],
  })
  options!: unknown[];

  @ApiProperty({ ...CONTEXT, description: 'To send as `prev_context` with the request for the next page; null if there is none.' })
  context!: Record<string, unknown> | null;
}

const DESCRIPTION =
  "Returns the prop's fixed list, or runs the component's `options()` with `query`, `page` and `prev_context`. An error that it throws is 422 with its message.";

const OPTIONS_EXAMPLES = {
  all: { summary: 'the first page', value: {} },
  search: { summary: 'a search', value: { configured_props: { account: 'main' }, query: 'orders' } },
  next: { summary: 'the next page', value: { page: 1, prev_context: { cursor: 'abc' } } },
};

@Documented('sources')
@Controller('v1')
export class PropOptionsController {
  constructor(private readonly messages: Messages) {}

  @Post('sources/:id/props/:name/options')
  @RouteConfig({ ...SLOW, ...REPEATABLE })
  @HttpCode(200)
  @ApiOperation({
    operationId: 'listSourcePropOptions',
    summary: 'List the values that a prop of a source may have',
    description: DESCRIPTION,
  })
  @MayTake(OptionsBody, OPTIONS_EXAMPLES)
  @RespondsWith(Options)
  @Problems(400, 404, 409, 413, 415, 422)
  async ofSource(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) source_id: SourceId,
    @Param('name') prop: string,
    @Body() body: OptionsBody,
  ): Promise<{ data: PropOptions }> {
    const query = { ...given(body), owner_id, source_id, prop };
    return { data: await this.messages.request(sourceOptions, query, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Post('components/:keyOrId/props/:name/options')
  @RouteConfig({ ...SLOW, ...REPEATABLE })
  @HttpCode(200)
  @ApiOperation({
    operationId: 'listComponentPropOptions',
    summary: 'List the values that a prop of a component may have',
    description: DESCRIPTION,
  })
  @MayTake(OptionsBody, OPTIONS_EXAMPLES)
  @RespondsWith(Options)
  @Problems(400, 404, 409, 413, 415, 422)
  async ofComponent(
    @OwnerId() owner_id: UserId,
    @Param('keyOrId', KeyPipe) key_or_id: string,
    @Param('name') prop: string,
    @Body() body: OptionsBody,
  ): Promise<{ data: PropOptions }> {
    const { code_hash } = await this.messages.request(getComponent, { owner_id, key_or_id }, { account: owner_id });
    const query = { ...given(body), owner_id, code_hash, prop };
    return { data: await this.messages.request(componentOptions, query, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }
}

/** Removes nulls, which count as absent. */
const given = ({ configured_props, query, page, prev_context }: OptionsBody) => ({
  configured_props: configured_props ?? undefined,
  query: query ?? undefined,
  page: page ?? undefined,
  prev_context: prev_context ?? undefined,
});
