import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { listRuns, type Page, type SourceId, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsWithPage, Documented, Problems } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { PageQuery } from '../http/page.dto.js';
import { Run } from './run.dto.js';

@Documented('sources')
@Controller('v1/sources/:id/runs')
export class RunsController {
  constructor(private readonly messages: Messages) {}

  @Get()
  @ApiOperation({
    operationId: 'listRuns',
    summary: 'List the last runs of a source',
    description: 'The last 100 runs that have ended, hooks included.',
  })
  @RespondsWithPage(Run)
  @Problems(400, 404)
  list(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('source')) source_id: SourceId, @Query() page: PageQuery): Promise<Page<Run>> {
    return this.messages.request(listRuns, { ...page, owner_id, source_id }, { account: owner_id });
  }
}
