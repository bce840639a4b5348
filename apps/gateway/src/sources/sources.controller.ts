import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Query } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiConsumes, ApiOperation } from '@nestjs/swagger';
import { secondsToReset } from '#config';
import {
  admitRun,
  type ComponentId,
  createSource,
  deleteSource,
  executeRun,
  getSource,
  listSources,
  newId,
  type Page,
  patchSource,
  requireComponent,
  requireKeptComponent,
  type RunRequest,
  SluiceError,
  type SourceId,
  TooManyRequests,
  updateSource,
  type UserId,
} from '#contracts';
import { Messages } from '#messaging';
import { FullAccounts } from '#waiting-data';
import { GatewayConfig } from '../gateway.config.js';
import { type Caller, mayReadSecrets, Me, OwnerId } from '../accounts/account.decorator.js';
import {
  RespondsAccepted,
  RespondsNoContent,
  RespondsWith,
  RespondsWithPage,
  Documented,
  Problems,
  Takes,
  MayTake,
} from '../http/api-docs.js';
import { ExternalIdQuery } from '../http/page.dto.js';
import { LargePages } from '../http/large-pages.js';
import { IdPipe } from '../http/id.pipe.js';
import { MERGE_PATCH_TYPES } from '../http/content-types.js';
import { CODE_TIMEOUT_MS } from '../http/longest-request.js';
import { checkedBy } from '../http/request.pipe.js';
import { SLOW } from '../limits/request-queues.js';
import { NewId, NewKsuid } from '../idempotency/new-ids.js';
import { CreateSourceBody, PatchSourceBody, RunSourceBody, Source, UpdateSourceBody } from './source.dto.js';

/** One of each way to choose the component. */
const COMPONENT_EXAMPLES = {
  byKey: { summary: 'by key: a component of the registry', value: { key: 'http-request', name: 'Orders' } },
  byCode: {
    summary: 'by code',
    value: {
      component_code: "export default { name: 'Hello', version: '0.0.1', props: { text: 'string' }, run() { this.$emit(this.text); } };",
      configured_props: { text: 'hello' },
    },
  },
  byUrl: { summary: 'by URL', value: { component_url: 'https://github.com/example/components/blob/main/price-watch.mjs' } },
  byId: { summary: 'by id', value: { component_id: 'sc_0Vg2mXq1Zk3TnB7cYw', external_id: 'orders-eu' } },
};

const PATCH_EXAMPLES = {
  pause: { summary: 'pause', value: { active: false } },
  props: { summary: 'change a prop', value: { configured_props: { timer: { intervalSeconds: 60 } } } },
  component: { summary: 'new code', value: COMPONENT_EXAMPLES.byCode.value },
};

/** How long the gateway waits for the runtime before it queues a run that may be over the quota. */
const ADMITTED_WITHIN_MS = 2000;

const RUN_EXAMPLES = {
  now: { summary: 'with the event of its timer', value: {} },
  event: { summary: 'with an event', value: { event: { order: 17 } } },
};

@Documented('sources')
@Controller('v1')
export class SourcesController {
  constructor(
    private readonly messages: Messages,
    private readonly pages: LargePages,
    private readonly full: FullAccounts,
    private readonly config: GatewayConfig,
  ) {}

  @Get('users/me/sources')
  @ApiOperation({ operationId: 'listSources', summary: 'List your sources' })
  @RespondsWithPage(Source)
  @Problems(400)
  list(@OwnerId() owner_id: UserId, @Me() caller: Caller, @Query() { external_id, ...page }: ExternalIdQuery): Promise<Page<Source>> {
    const query = { owner_id, external_id, without_endpoints: !mayReadSecrets(caller) };
    return this.pages.read(owner_id, page, (part) => this.messages.request(listSources, { ...query, ...part }, { account: owner_id }));
  }

  @Post('sources')
  @RouteConfig(SLOW)
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createSource',
    summary: 'Create a source',
    description:
      'One of component_id, component_code, component_url and key (of a registered component) is required; the first one given, in this order, is used. Beyond `SLUICE_MAX_SOURCES` sources of the account: 409.',
  })
  @Takes(CreateSourceBody, COMPONENT_EXAMPLES)
  @RespondsWith(Source)
  @Problems(400, 404, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @NewId('source') id: SourceId,
    @NewId('component') new_component_id: ComponentId,
    @Body() body: CreateSourceBody,
  ): Promise<{ data: Source }> {
    const command = { ...body, owner_id, id, new_component_id };
    return { data: await this.messages.request(createSource, command, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Get('sources/:id')
  @ApiOperation({ operationId: 'getSource', summary: 'Get a source' })
  @RespondsWith(Source)
  @Problems(404)
  async get(@OwnerId() owner_id: UserId, @Me() caller: Caller, @Param('id', new IdPipe('source')) id: SourceId): Promise<{ data: Source }> {
    const query = { owner_id, id, without_endpoints: !mayReadSecrets(caller) };
    return { data: await this.messages.request(getSource, query, { account: owner_id }) };
  }

  @Put('sources/:id')
  @RouteConfig(SLOW)
  @ApiOperation({
    operationId: 'updateSource',
    summary: 'Update a source',
    description:
      'A component is required, as in createSource. If name or active is omitted, it is reset to its default. If configured_props is omitted, the props keep their values. PATCH changes only what is given.',
  })
  @Takes(UpdateSourceBody, COMPONENT_EXAMPLES)
  @RespondsWith(Source)
  @Problems(400, 404, 409, 413, 415)
  async update(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Body(checkedBy(requireComponent)) body: UpdateSourceBody,
  ): Promise<{ data: Source }> {
    const command = { ...body, owner_id, id, new_component_id: newId('component') };
    return { data: await this.messages.request(updateSource, command, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Patch('sources/:id')
  @RouteConfig(SLOW)
  @ApiConsumes(...MERGE_PATCH_TYPES)
  @ApiOperation({
    operationId: 'patchSource',
    summary: 'Change parts of a source',
    description:
      'A JSON merge patch (RFC 7396): only what is given changes. A component may be given by component_id, component_code, component_url or key, as in createSource; its props keep their values.',
  })
  @MayTake(PatchSourceBody, PATCH_EXAMPLES)
  @RespondsWith(Source)
  @Problems(400, 404, 409, 413, 415)
  async patch(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Body(checkedBy(requireKeptComponent)) body: PatchSourceBody,
  ): Promise<{ data: Source }> {
    const command = { ...body, owner_id, id, new_component_id: newId('component') };
    return { data: await this.messages.request(patchSource, command, { account: owner_id, timeoutMs: CODE_TIMEOUT_MS }) };
  }

  @Delete('sources/:id')
  @HttpCode(204)
  @ApiOperation({ operationId: 'deleteSource', summary: 'Delete a source' })
  @RespondsNoContent('The source has been deleted.')
  @Problems(404)
  async delete(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('source')) id: SourceId): Promise<void> {
    await this.messages.request(deleteSource, { owner_id, id }, { account: owner_id });
  }

  @Post('sources/:id/run')
  @HttpCode(202)
  @ApiOperation({
    operationId: 'runSource',
    summary: 'Run a source now',
    description: 'Runs it with the given event; default: the event of its timer, or `{}` if it has none.',
  })
  @MayTake(RunSourceBody, RUN_EXAMPLES)
  @RespondsAccepted('AcceptedRun', 'The id of the run.', { type: 'object', required: ['id'], properties: { id: { type: 'string' } } })
  @Problems(400, 404, 409, 413, 415, 422)
  async run(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @NewKsuid() run_id: string,
    @Body() { event }: RunSourceBody,
  ): Promise<{ data: { id: string } }> {
    await this.full.refuseFull(owner_id);
    const source = await this.messages.request(getSource, { owner_id, id }, { account: owner_id });
    if (!source.active) throw new SluiceError('conflict', `source ${id} is not active`);
    const due = { run_id, owner_id, source_id: id, trigger: 'manual' as const, due_at_ms: Date.now() };
    const run = event === undefined ? due : { ...due, event: JSON.stringify(event) };
    if (this.config.quotas && !(await this.isAdmitted(run)))
      throw new TooManyRequests("the account's daily quota is used up until 00:00 UTC", secondsToReset(Date.now()));
    // returns when Kafka has acknowledged the request
    await this.messages.publish(executeRun, run, owner_id);
    return { data: { id: run_id } };
  }

  /** Whether the runtime admits the run. One that does not respond, or is of an earlier version, must not prevent that the run is queued. */
  private isAdmitted(run: RunRequest): Promise<boolean> {
    return this.messages.request(admitRun, run, { account: run.owner_id, timeoutMs: ADMITTED_WITHIN_MS }).catch((error: unknown) => {
      if (error instanceof SluiceError && ['timeout', 'unavailable'].includes(error.code)) return true;
      throw error;
    });
  }
}
