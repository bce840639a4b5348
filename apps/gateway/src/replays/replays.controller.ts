import { Body, Controller, Delete, Get, HttpStatus, Param, Post, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { cancelReplay, createReplay, getReplay, type ReplayId, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { FullAccounts } from '#waiting-data';
import { OwnerId } from '../accounts/account.decorator.js';
import { RespondsAccepted, RespondsInline, RespondsWith, Documented, Problems, Takes } from '../http/api-docs.js';
import { IdPipe } from '../http/id.pipe.js';
import { NewId } from '../idempotency/new-ids.js';
import { SLOW } from '../limits/request-queues.js';
import { CreateReplayBody, Replay, requestedReplay } from './replay.dto.js';

/** Counting the events reads that part of the log. */
const LOG_TIMEOUT_MS = 30_000;
const COUNT = { type: 'object', required: ['events'], properties: { events: { type: 'integer' } } };

const BETWEEN = { emitter_id: 'dc_0Vg2mXq1Zk3TnB7cYw', listener_id: 'wh_0Vg2mXq1Zk3TnB7cYw' };
const REPLAY_EXAMPLES = {
  byTime: { summary: 'by time', value: { ...BETWEEN, from: '2026-01-31T12:00:00Z', to: '2026-01-31T13:00:00Z' } },
  byEvent: { summary: 'by event', value: { ...BETWEEN, event_name: '*', from: '1763715600123-40960', to: '1763715700000-40999' } },
  count: { summary: 'only count', value: { ...BETWEEN, from: 1763715600, to: 1763719200, dry_run: true } },
};

@Documented('replays')
@Controller('v1/replays')
export class ReplaysController {
  constructor(
    private readonly messages: Messages,
    private readonly full: FullAccounts,
  ) {}

  @Post()
  @RouteConfig(SLOW)
  @ApiOperation({
    operationId: 'createReplay',
    summary: 'Deliver past events once more to one listener',
    description:
      'Reads the log as far back as it reaches, whether or not the events are stored or were delivered before. Deleted events are not delivered. Deliveries keep their `webhook-id`, and live ones go first. Switching the listener off cancels the replay. The log from `from` to `to` is read before the response, events of others included: if that takes more than 25 seconds (about 1 GB, or a million small events), the response is 503, and shorter ranges have to be replayed one after another.',
  })
  @Takes(CreateReplayBody, REPLAY_EXAMPLES)
  @RespondsInline(200, 'ReplayCount', 'With `dry_run`: how many events there are.', COUNT)
  @RespondsAccepted('AcceptedReplay', 'The replay runs.', {
    type: 'object',
    required: ['id', 'events'],
    properties: { id: { type: 'string', example: 'rpl_0Vg2mXq1Zk3TnB7cYw' }, events: { type: 'integer' } },
  })
  @Problems(400, 404, 409, 413, 415, 422)
  async create(
    @OwnerId() owner_id: UserId,
    @NewId('replay') id: ReplayId,
    @Body() body: CreateReplayBody,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ data: { id?: ReplayId; events: number } }> {
    const command = { id, owner_id, ...requestedReplay(body) };
    if (!command.dry_run) await this.full.refuseFull(owner_id);
    // before the request: a late reply gets the status that is set by then
    void reply.status(command.dry_run ? HttpStatus.OK : HttpStatus.ACCEPTED);
    const { events } = await this.messages.request(createReplay, command, { account: owner_id, timeoutMs: LOG_TIMEOUT_MS });
    return { data: command.dry_run ? { events } : { id, events } };
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getReplay', summary: 'Get the progress of a replay' })
  @RespondsWith(Replay)
  @Problems(404)
  async get(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('replay')) id: ReplayId): Promise<{ data: Replay }> {
    return { data: await this.messages.request(getReplay, { owner_id, id }, { account: owner_id }) };
  }

  @Delete(':id')
  @ApiOperation({
    operationId: 'cancelReplay',
    summary: 'Cancel a replay',
    description:
      'Returns its progress. The deliveries or runs that are under way, at most 200, are still made; those that are attempted within about a minute are counted. A replay that is done stays so.',
  })
  @RespondsWith(Replay)
  @Problems(404)
  async cancel(@OwnerId() owner_id: UserId, @Param('id', new IdPipe('replay')) id: ReplayId): Promise<{ data: Replay }> {
    return { data: await this.messages.request(cancelReplay, { owner_id, id }, { account: owner_id }) };
  }
}
