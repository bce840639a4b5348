import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  cancelReplay,
  CreateReplay,
  createReplay,
  getReplay,
  Invalid,
  isId,
  NotFound,
  type ReplayProgress,
  ReplayReference,
  TooManyRequests,
  type UserId,
} from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles, Lanes } from '#messaging';
import { LimitPerKey } from '#limits';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import { ReplaysRepository } from './replays.repository.js';
import { type ReplayedPart, ReplayLog } from './replay-log.js';

/** Running replays of an account: they take turns with those of others. */
const RUNNING_PER_ACCOUNT = 20;
/** Replays whose events are counted, or wait for that. */
const COUNTED_PER_ACCOUNT = 4;
const COUNTED_OF_ALL = 16;
/** Counted at a time, each for another account: they share the time that the process can spare. */
const COUNTED_AT_ONCE = 2;
/** Of the gateway's patience, with what else it takes. */
const COUNT_MS = 25_000;

@Controller()
export class ReplaysController {
  private readonly counts = new LimitPerKey<UserId>(COUNTED_PER_ACCOUNT, COUNTED_OF_ALL);
  private readonly turns = new Lanes({ concurrency: COUNTED_AT_ONCE });

  constructor(
    private readonly replays: ReplaysRepository,
    private readonly replayLog: ReplayLog,
    private readonly directory: EmitterDirectory,
    private readonly webhooks: WebhooksRepository,
  ) {}

  @Handles(createReplay)
  async create(@Payload() { id, dry_run, ...request }: CreateReplay): Promise<{ events: number }> {
    const { owner_id, emitter_id, listener_id } = request;
    // the request is repeated: its replay exists, and counts among those that run
    const made = dry_run === true ? undefined : await this.replays.find(owner_id, id);
    if (made) return { events: made.events };
    await this.directory.requireOwned(owner_id, emitter_id);
    await this.requireActive(owner_id, listener_id);
    if (dry_run !== true && (await this.replays.countRunning(owner_id)) >= RUNNING_PER_ACCOUNT)
      throw new TooManyRequests(`at most ${RUNNING_PER_ACCOUNT} replays of an account can run at a time`);
    return this.counts.run(owner_id, 'too many replays are being created; try again in a moment', async () => {
      const { events, to_id } = await this.count({ ...request, offsets: {} });
      if (dry_run !== true) await this.replays.add({ id, ...request, to_id, events });
      return { events };
    });
  }

  @Handles(getReplay)
  async get(@Payload() { owner_id, id }: ReplayReference): Promise<ReplayProgress> {
    const progress = await this.replays.progress(owner_id, id);
    if (!progress) throw new NotFound('replay', id);
    return progress;
  }

  @Handles(cancelReplay)
  async cancel(@Payload() reference: ReplayReference): Promise<ReplayProgress> {
    await this.replays.cancel(reference.owner_id, reference.id);
    return this.get(reference);
  }

  /** The accounts take turns. */
  private count(part: ReplayedPart): ReturnType<ReplayLog['count']> {
    const end = performance.now() + COUNT_MS;
    return this.turns.execute(part.owner_id, () => this.replayLog.count(part, { withinMs: end - performance.now() }));
  }

  private async requireActive(ownerId: UserId, id: string): Promise<void> {
    const listener = isId('webhook', id) ? await this.webhooks.find(ownerId, id) : await this.directory.findOwned(ownerId, id);
    if (!listener) throw new NotFound('listener', id);
    if (!listener.active) throw new Invalid([{ field: 'listener_id', message: `listener ${id} is not active` }]);
  }
}
