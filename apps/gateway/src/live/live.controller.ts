import { applyDecorators, Controller, Get, Param, Query, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiHeader, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import type { SourceId, WorkflowId } from '#contracts';
import { type Caller, Me } from '../accounts/account.decorator.js';
import { Documented, Problems, REQUEST_ID } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { UNQUEUED } from '../limits/request-queues.js';
import { LastEventId, LiveQuery, resumePlace } from './live-query.js';
import { LiveStreamsService } from './live-streams.service.js';

const EXAMPLE = `id: 1763715600123-40960
data: {"id":"1763715600123-40960","indexed_at_ms":1763715600123,"event":{"order":17},"metadata":{"emitter_id":"dc_…","emit_id":"…","name":""}}

: still here

`;

const RespondsWithStream = (operationId: string, summary: string): MethodDecorator =>
  applyDecorators(
    ApiOperation({
      operationId,
      summary,
      description:
        'Server-Sent Events: `id` is the event id, `data` the event summary as JSON; a comment is sent at least every 30 seconds, by default every 15. A client that reconnects with the id of the last event it received (Last-Event-ID or `after`) gets all later events that are still stored. A client that does not read is disconnected. When the API key is revoked, the emitter deleted, or the account suspended or deleted, the stream ends at the next comment.',
    }),
    ApiHeader({
      name: 'Last-Event-ID',
      required: false,
      description: 'The id of an event: start with the events after it. Takes precedence over `after`.',
    }),
    ApiResponse({
      status: 200,
      description: 'The events as they are emitted.',
      headers: REQUEST_ID,
      content: { 'text/event-stream': { schema: { type: 'string' }, example: EXAMPLE } },
    }),
    Problems(400, 404),
  );

@Documented('events')
@Controller('v1')
export class LiveController {
  constructor(private readonly streams: LiveStreamsService) {}

  @Get('sources/:id/sse')
  @RouteConfig(UNQUEUED)
  @RespondsWithStream('streamSourceEvents', 'Stream the events of a source as they are emitted')
  ofSource(
    @Me() caller: Caller,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: LiveQuery,
    @LastEventId() lastEventId: string | undefined,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    return this.streams.stream(caller, id, query, resumePlace(lastEventId, query.after), reply);
  }

  @Get('workflows/:id/sse')
  @RouteConfig(UNQUEUED)
  @RespondsWithStream('streamWorkflowEvents', 'Stream the events of a workflow as they are emitted')
  ofWorkflow(
    @Me() caller: Caller,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: LiveQuery,
    @LastEventId() lastEventId: string | undefined,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    return this.streams.stream(caller, id, query, resumePlace(lastEventId, query.after), reply);
  }
}
