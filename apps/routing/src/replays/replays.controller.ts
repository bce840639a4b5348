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
  type UserId,
} from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import { progressOf, ReplaysRepository } from './replays.repository.js';
import { ReplayLog } from './replay-log.js';

@Controller()
export class ReplaysController {
  constructor(
    private readonly replays: ReplaysRepository,
    private readonly log: ReplayLog,
    private readonly directory: EmitterDirectory,
    private readonly webhooks: WebhooksRepository,
  ) {}

  @Handles(createReplay)
  async create(@Payload() { id, dry_run, ...request }: CreateReplay): Promise<{ events: number }> {
    const { owner_id, emitter_id, listener_id } = request;
    if (!(await this.directory.findOwned(owner_id, emitter_id)))
      throw new NotFound(isId('source', emitter_id) ? 'source' : 'workflow', emitter_id);
    await this.requireActive(owner_id, listener_id);
    const events = await this.log.count({ ...request, offsets: {} });
    if (dry_run !== true) await this.replays.add({ id, ...request, events });
    return { events };
  }

  @Handles(getReplay)
  async get(@Payload() { owner_id, id }: ReplayReference): Promise<ReplayProgress> {
    const row = await this.replays.find(owner_id, id);
    if (!row) throw new NotFound('replay', id);
    return progressOf(row);
  }

  @Handles(cancelReplay)
  async cancel(@Payload() reference: ReplayReference): Promise<ReplayProgress> {
    await this.replays.cancel(reference.owner_id, reference.id);
    return this.get(reference);
  }

  private async requireActive(ownerId: UserId, id: string): Promise<void> {
    const listener = isId('webhook', id) ? await this.webhooks.find(ownerId, id) : await this.directory.findOwned(ownerId, id);
    if (!listener) throw new NotFound('listener', id);
    if (!listener.active) throw new Invalid([{ field: 'listener_id', message: `listener ${id} is not active` }]);
  }
}
