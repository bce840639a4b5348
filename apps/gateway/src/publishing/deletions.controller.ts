import { Controller, Delete, HttpCode, Param } from '@nestjs/common';
import { ApiOperation, ApiQuery } from '@nestjs/swagger';
import type { SourceId, UserId } from '#contracts';
import { OwnerId } from '../accounts/account.decorator.js';
import { DeleteEventsQuery } from '../events/event.dto.js';
import { Documented, Problems, RespondsAccepted } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { Parameters } from '../http/request.pipe.js';
import { DeletionsService } from './deletions.service.js';

@Documented('events')
@Controller('v1')
export class DeletionsController {
  constructor(private readonly deletions: DeletionsService) {}

  @Delete('sources/:id/events')
  @HttpCode(202)
  @ApiOperation({
    operationId: 'deleteSourceEvents',
    summary: 'Delete events of a source',
    description:
      'Deletes the events in the inclusive range of ids that were emitted before the call, asynchronously. Their deliveries to webhooks are not retried; first attempts and runs of sources that are queued may still happen. Deleting a waiting event from `$in` cancels it. The parameters can also be fields of a JSON body; the query wins.',
  })
  @ApiQuery({ type: DeleteEventsQuery })
  @RespondsAccepted('AcceptedDeletion', 'The deletion is queued durably.')
  @Problems(400, 404)
  async delete(
    @OwnerId() owner: UserId,
    @Param('id', new IdPipe('source')) id: SourceId,
    @Parameters(DeleteEventsQuery) range: DeleteEventsQuery,
  ): Promise<{ data: object }> {
    await this.deletions.delete(owner, id, range);
    return { data: {} };
  }
}
