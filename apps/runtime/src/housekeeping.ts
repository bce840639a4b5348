import { Inject, Injectable } from '@nestjs/common';
import { RECORDS_GONE_AFTER_DAYS } from '#contracts';
import { HourlyHousekeeping } from '#database';
import { LOG, type Log } from '#observability';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { RetriedRunsRepository } from './retries/retried-runs.repository.js';
import { RunsRepository } from './runs/runs.repository.js';
import { SourceStateRepository } from './source-state/source-state.repository.js';
import { WaitingEmitsRepository } from './waiting/waiting-emits.repository.js';

@Injectable()
export class Housekeeping extends HourlyHousekeeping {
  constructor(
    @Inject(LOG) log: Log,
    private readonly runs: RunsRepository,
    private readonly quotas: QuotasRepository,
    private readonly retried: RetriedRunsRepository,
    private readonly waiting: WaitingEmitsRepository,
    private readonly state: SourceStateRepository,
  ) {
    super(log);
  }

  protected deletions(): (() => Promise<void>)[] {
    return [
      // a run may be repeated until Kafka has deleted its record
      () => this.runs.deleteDone(RECORDS_GONE_AFTER_DAYS),
      () => this.runs.deleteOfDeleted(),
      () => this.retried.deleteOfDeleted(),
      () => this.waiting.deleteOfDeleted(),
      () => this.state.deleteOfDeleted(),
      () => this.quotas.deleteOld(),
    ];
  }
}
