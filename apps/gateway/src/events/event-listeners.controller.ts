import { Controller, Get, Param } from '@nestjs/common';
import { ApiOperation, ApiParam } from '@nestjs/swagger';
import { type EmitterId, type EndedRun, findRuns, listEventListeners, type SourceId, type UserId, type WorkflowId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithList, Documented, Problems } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { EventIdPipe } from './event-validators.js';
import { EventListener } from './event-listener.dto.js';

/** Reading an event from the log takes longer than the default timeout of requests. */
const LOG_TIMEOUT_MS = 30_000;
const DESCRIPTION =
  'Every listener that the event went to, or goes to now: webhooks with their attempts, sources with their runs, workflows.';

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
    const listeners = await this.messages.request(listEventListeners, query, { key: emitter_id, timeoutMs: LOG_TIMEOUT_MS });
    const run_ids = listeners.flatMap(({ run_id }) => run_id ?? []);
    const ended = run_ids.length === 0 ? [] : await this.messages.request(findRuns, { owner_id, run_ids }, { key: owner_id });
    const runs = new Map(ended.map((run) => [run.id, run]));
    return {
      data: listeners.map((listener) => {
        const run = listener.run_id === null ? undefined : runs.get(listener.run_id);
        return run ? { ...listener, run_id: run.last_id, status: deliveryStatus(run), attempts: run.attempts } : listener;
      }),
    };
  }
}

/** The status of the event at a source. A run that has left the list counts as successful. */
function deliveryStatus({ status }: EndedRun): EventListener['status'] {
  if (status === null || status === 'succeeded') return 'succeeded';
  return status === 'skipped' || status === 'pending' ? status : 'failed';
}
