import { Controller, Get, Param } from '@nestjs/common';
import { ApiOperation, ApiParam } from '@nestjs/swagger';
import { type EmitterId, type EventRun, findRuns, listEventListeners, type SourceId, type UserId, type WorkflowId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithList, Documented, Problems } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { EventIdPipe } from './event-validators.js';
import { EventListener } from './event-listener.dto.js';

/** Reading an event from the log takes longer than the default timeout of requests. */
const LOG_TIMEOUT_MS = 30_000;
const DESCRIPTION =
  'Every listener that the event went to, or is on its way to: webhooks with their attempts, sources with their runs, including those of replays, ' +
  'and workflows. A later change of a subscription or of `active` does not change the list, but a workflow is listed only while it is subscribed. ' +
  'Known are the last 100 deliveries of a webhook that succeeded, except those of the last two seconds before a crash, failed ones for ' +
  '`SLUICE_FAILED_DELIVERIES_KEPT` (7 days), and runs of a source for 8 days. A delivery before a known one from the same emitter (while failed ones are ' +
  'kept), and a run that is not among the last 100 of its source, are `succeeded`, without attempts. A listener of which nothing is known any more is ' +
  'left out. After 1 MiB of attempts, deliveries have only the last one, without its response; listDeliveries returns all of them.';

const EventIdParam = (): MethodDecorator => ApiParam({ name: 'eventId', schema: { type: 'string', example: '1763715600123-40960' } });

@Documented('events')
@Controller('v1')
export class EventListenersController {
  constructor(private readonly messages: Messages) {}

  @Get('sources/:id/events/:eventId/deliveries')
  @EventIdParam()
  @ApiOperation({
    operationId: 'listSourceEventDeliveries',
    summary: 'List the deliveries of an event of a source',
    description: DESCRIPTION,
  })
  @RespondsWithList(EventListener)
  @Problems(400, 404)
  ofSource(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Param('eventId', EventIdPipe) eventId: string,
  ): Promise<{ data: EventListener[] }> {
    return this.list(owner, id, eventId);
  }

  @Get('workflows/:id/events/:eventId/deliveries')
  @EventIdParam()
  @ApiOperation({
    operationId: 'listWorkflowEventDeliveries',
    summary: 'List the deliveries of an event of a workflow',
    description: DESCRIPTION,
  })
  @RespondsWithList(EventListener)
  @Problems(400, 404)
  ofWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Param('eventId', EventIdPipe) eventId: string,
  ): Promise<{ data: EventListener[] }> {
    return this.list(owner, id, eventId);
  }

  private async list(owner_id: UserId, emitter_id: EmitterId, event_id: string): Promise<{ data: EventListener[] }> {
    const query = { owner_id, emitter_id, event_id };
    const { listeners, runs } = await this.messages.request(listEventListeners, query, {
      account: owner_id,
      key: emitter_id,
      timeoutMs: LOG_TIMEOUT_MS,
    });
    return { data: withRuns(listeners, await this.messages.request(findRuns, { owner_id, ...runs }, { account: owner_id })) };
  }
}

/** The listeners of an event with its runs: a source that has some is listed with them, whatever its subscriptions are now. */
export function withRuns(listeners: EventListener[], runs: EventRun[]): EventListener[] {
  const sources = Map.groupBy(runs, ({ source_id }) => source_id);
  const others = listeners.filter(({ listener_id }) => !sources.has(listener_id as SourceId));
  return [...others, ...[...sources].map(([id, ofSource]) => listenerOf(id, ofSource))];
}

/** @param runs of the event itself and then of replays; at least one */
function listenerOf(listener_id: SourceId, runs: EventRun[]): EventListener {
  const last = (runs.findLast(({ status }) => status !== 'skipped') ?? runs.at(-1))!;
  return {
    listener_id,
    kind: 'source',
    delivery_id: null,
    run_id: last.last_id ?? runs.findLast(({ last_id }) => last_id !== null)?.last_id ?? null,
    status: deliveryStatus(last),
    attempts: runs.flatMap(({ attempts }) => attempts),
  };
}

/** The status of the event at a source. A run that has left the list counts as successful. */
function deliveryStatus({ status }: EventRun): EventListener['status'] {
  if (status === null || status === 'succeeded') return 'succeeded';
  return status === 'skipped' || status === 'pending' ? status : 'failed';
}
