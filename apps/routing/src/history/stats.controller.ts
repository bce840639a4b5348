import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { isId, NotFound, type StatBucket, TrafficStats, trafficStats } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { Stats } from '#stats';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';

/** How many events emitters emitted, and how deliveries to webhooks went. */
@Controller()
export class StatsController {
  constructor(
    private readonly stats: Stats,
    private readonly directory: EmitterDirectory,
    private readonly webhooks: WebhooksRepository,
  ) {}

  @Handles(trafficStats)
  async list(@Payload() { owner_id, id, from_s, bucket_s }: TrafficStats): Promise<StatBucket[]> {
    if (!isId('webhook', id)) await this.directory.requireOwned(owner_id, id);
    else if (!(await this.webhooks.find(owner_id, id))) throw new NotFound('webhook', id);
    return this.stats.list(id, from_s, bucket_s);
  }
}
