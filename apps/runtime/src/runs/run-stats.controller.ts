import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { RunStats, runStats, type StatBucket } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { Handles } from '#messaging';
import { Stats } from '#stats';

/** Returns the statistics of a source's runs. */
@Controller()
export class RunStatsController {
  constructor(
    private readonly stats: Stats,
    private readonly directory: EmitterDirectory,
  ) {}

  @Handles(runStats)
  async list(@Payload() { owner_id, id, from_s, bucket_s }: RunStats): Promise<StatBucket[]> {
    await this.directory.requireOwned(owner_id, id);
    return this.stats.list(id, from_s, bucket_s);
  }
}
