import { applyDecorators, Controller, Get, Param, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { runStats, type SourceId, trafficStats, type UserId, type WebhookId, type WorkflowId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWith, Documented, Problems } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { partOf, Stats, StatsQuery, viewOf } from './stats.dto.js';

const DESCRIPTION =
  'Counts per bucket. They are at most 30 seconds behind, and a service that is killed loses the counts of its last 10 seconds. Counts that do not apply are 0.';

const RespondsWithStats = (operationId: string, summary: string): MethodDecorator =>
  applyDecorators(ApiOperation({ operationId, summary, description: DESCRIPTION }), RespondsWith(Stats), Problems(400, 404));

/** The part of the statistics that is shown, and the query for it. */
function shown(owner_id: UserId, id: SourceId | WorkflowId | WebhookId, { window }: StatsQuery) {
  const part = partOf(window, Math.floor(Date.now() / 1000));
  return { part, query: { owner_id, id, from_s: part.from_s, bucket_s: part.bucket_s } };
}

@Documented('stats')
@Controller('v1')
export class StatsController {
  constructor(private readonly messages: Messages) {}

  @Get('sources/:id/stats')
  @RespondsWithStats('getSourceStats', 'Count the events and runs of a source')
  async ofSource(
    @OwnerId() owner_id: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() window: StatsQuery,
  ): Promise<{ data: Stats }> {
    const { part, query } = shown(owner_id, id, window);
    const [traffic, runs] = await Promise.all([
      this.messages.request(trafficStats, query, { account: owner_id }),
      this.messages.request(runStats, { ...query, id }, { account: owner_id }),
    ]);
    return { data: viewOf(part, { traffic, runs }) };
  }

  @Get('workflows/:id/stats')
  @RespondsWithStats('getWorkflowStats', 'Count the events of a workflow')
  ofWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: StatsQuery,
  ): Promise<{ data: Stats }> {
    return this.traffic(owner, id, query);
  }

  @Get('webhooks/:id/stats')
  @RespondsWithStats('getWebhookStats', 'Count the deliveries to a webhook')
  ofWebhook(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('webhook')) id: WebhookId,
    @Query() query: StatsQuery,
  ): Promise<{ data: Stats }> {
    return this.traffic(owner, id, query);
  }

  private async traffic(owner_id: UserId, id: WorkflowId | WebhookId, window: StatsQuery): Promise<{ data: Stats }> {
    const { part, query } = shown(owner_id, id, window);
    return { data: viewOf(part, { traffic: await this.messages.request(trafficStats, query, { account: owner_id }), runs: [] }) };
  }
}
