import { Controller, Delete, Get, Header, HttpCode, Param, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type EmitterId, ERRORS_STREAM, type SourceId, type UserId, type WorkflowId } from '#contracts';
import { OwnerId } from '../auth/account.decorator.js';
import { IdPipe } from '../http/id.pipe.js';
import { requestedFields } from '../http/fields.js';
import { eventPageJson } from './event-page.js';
import { DeleteEventsQuery, EventPageQuery } from './event-queries.js';
import { EventsService } from './events.service.js';

const JSON_TYPE = 'application/json; charset=utf-8';

@Controller('v1')
export class EventsController {
  constructor(private readonly events: EventsService) {}

  @Get('sources/:id/event_summaries')
  @Header('content-type', JSON_TYPE)
  ofSource(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string> {
    return this.page(owner, id, query, request);
  }

  @Get('workflows/:id/event_summaries')
  @Header('content-type', JSON_TYPE)
  ofWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string> {
    return this.page(owner, id, query, request);
  }

  @Get('workflows/:id/$errors/event_summaries')
  @Header('content-type', JSON_TYPE)
  errorsOfWorkflow(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('workflow')) id: WorkflowId,
    @Query() query: EventPageQuery,
    @Req() request: FastifyRequest,
  ): Promise<string> {
    return this.page(owner, id, { ...query, event_name: ERRORS_STREAM }, request);
  }

  @Delete('sources/:id/events')
  @HttpCode(202)
  async delete(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Query() query: DeleteEventsQuery,
  ): Promise<{ data: object }> {
    await this.events.delete(owner, id, query);
    return { data: {} };
  }

  private async page(owner: UserId, emitter: EmitterId, query: EventPageQuery, request: FastifyRequest): Promise<string> {
    return eventPageJson(await this.events.page(owner, emitter, query), requestedFields(request));
  }
}
