import { Controller, Get, Header, Param, Query, Req } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { type EmitterId, type SourceId, type UserId, type WorkflowId } from '#contracts';
import { ERRORS_STREAM, LOGS_STREAM } from '#events';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsInline, Documented, Problems, RespondsWithList, RespondsWithPage, SelectsFields } from '../http/api-docs.js';
import { requestedFields } from '../http/fields.js';
import { IdPipe } from '../http/id.pipe.js';
import { JSON_TYPE } from '../http/list-body.js';
import { eventPageBody, polledEvent, selectedSummary } from './event-page.js';
import { EmitterStream, EventPageQuery, EventSummary, StreamPageQuery } from './event.dto.js';
import { EventsService } from './events.service.js';

@Documented('events')
@Controller('v1')
export class EventsController {
  constructor(private readonly events: EventsService) {}

  @Get('sources/:id/event_summaries')
  @Header('content-type', JSON_TYPE)
  @ApiOperation({ operationId: 'listSourceEvents', summary: 'List the last events of a source' })
  @RespondsWithPage(EventSummary)
  @Problems(400, 404)
  ofSource(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string | Readable> {
    return this.page(owner, id, query, request);
  }

  @Get('sources/:id/logs')
  @Header('content-type', JSON_TYPE)
  @ApiOperation({ operationId: 'listSourceLogs', summary: 'List the last log lines of a source' })
  @RespondsWithPage(EventSummary)
  @Problems(400, 404)
  logsOfSource(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: StreamPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string | Readable> {
    return this.page(owner, id, { ...query, event_name: LOGS_STREAM }, request);
  }

  @Get('sources/:id/events')
  @Header('content-type', JSON_TYPE)
  @ApiOperation({
    operationId: 'pollSourceEvents',
    summary: 'List the last events of a source in full, in the format that older clients poll',
    description: 'Events are whole, with or without `expand`.',
  })
  @SelectsFields()
  @RespondsInline(200, 'PolledEvents', 'Newest first.', {
    type: 'array',
    items: {
      title: 'PolledEvent',
      type: 'object',
      required: ['id', 'ts', 'k', 'e'],
      properties: {
        id: { type: 'string' },
        ts: { type: 'integer', format: 'int64', description: 'Milliseconds.' },
        k: { type: 'string', enum: ['emit'] },
        e: { description: 'The event.' },
      },
    },
  })
  @Problems(400, 404)
  poll(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string | Readable> {
    const shown = polledEvent(requestedFields(request));
    return eventPageBody(this.events.chunks(owner, id, { ...query, expand: 'event' }), shown, { withInfo: false });
  }

  @Get('workflows/:id/event_summaries')
  @Header('content-type', JSON_TYPE)
  @ApiOperation({ operationId: 'listWorkflowEvents', summary: 'List the last events of a workflow' })
  @RespondsWithPage(EventSummary)
  @Problems(400, 404)
  ofWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string | Readable> {
    return this.page(owner, id, query, request);
  }

  @Get('workflows/:id/$errors/event_summaries')
  @Header('content-type', JSON_TYPE)
  @ApiOperation({ operationId: 'listWorkflowErrors', summary: 'List the last errors of a workflow' })
  @RespondsWithPage(EventSummary)
  @Problems(400, 404)
  errorsOfWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: StreamPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string | Readable> {
    return this.page(owner, id, { ...query, event_name: ERRORS_STREAM }, request);
  }

  @Get('sources/:id/streams')
  @ApiOperation({ operationId: 'listSourceStreams', summary: 'The streams of a source that hold events' })
  @RespondsWithList(EmitterStream)
  @Problems(404)
  async streamsOfSource(@OwnerId() owner: UserId, @Param('id', new IdPipe('source')) id: SourceId): Promise<{ data: EmitterStream[] }> {
    return { data: await this.events.streams(owner, id) };
  }

  @Get('workflows/:id/streams')
  @ApiOperation({ operationId: 'listWorkflowStreams', summary: 'The streams of a workflow that hold events' })
  @RespondsWithList(EmitterStream)
  @Problems(404)
  async streamsOfWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
  ): Promise<{ data: EmitterStream[] }> {
    return { data: await this.events.streams(owner, id) };
  }

  private page(owner: UserId, emitter: EmitterId, query: EventPageQuery, request: FastifyRequest): Promise<string | Readable> {
    return eventPageBody(this.events.chunks(owner, emitter, query), selectedSummary(requestedFields(request)));
  }
}
