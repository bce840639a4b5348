import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { DatabaseRestores } from '#service';
import { SourcesRepository } from './sources.repository.js';

const RETRY_MS = 1000;

/**
 * The other services know the states that sources had after the backup. When the catalog's database was restored, its states are published again, so
 * that what the REST API shows is what runs.
 */
@Injectable()
export class RestoredSources implements OnModuleInit {
  private publishing: Promise<void> | undefined;

  constructor(
    private readonly restores: DatabaseRestores,
    private readonly sources: SourcesRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onModuleInit(): void {
    // each consumer group recognises the restore
    this.restores.onRestored(() => (this.publishing ??= this.publish().finally(() => (this.publishing = undefined))));
  }

  private async publish(): Promise<void> {
    for (;;) {
      try {
        this.log.warn({ sources: await this.sources.republish() }, 'sources.republished');
        return;
      } catch (error) {
        this.log.error({ reason: (error as Error).message }, 'sources.not-republished');
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
  }
}
