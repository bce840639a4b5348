import { Inject, Injectable } from '@nestjs/common';
import { HourlyHousekeeping } from '#database';
import { LOG, type Log } from '#observability';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { RetriedRunsRepository } from './retries/retried-runs.repository.js';
import { RunsRepository } from './runs/runs.repository.js';
import { SourceStateRepository } from './source-state/source-state.repository.js';
import { WaitingEmitsRepository } from './waiting/waiting-emits.repository.js';

/** A run may be repeated until Kafka has deleted its record, within eight days (libs/contracts/src/topics.ts). */
const KEEP_RUNS_DAYS = 8;

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
      () => this.runs.deleteDone(KEEP_RUNS_DAYS),
      () => this.runs.deleteOfDeleted(),
      () => this.retried.deleteOfDeleted(),
      () => this.waiting.deleteOfDeleted(),
      () => this.state.deleteOfDeleted(),
      () => this.quotas.deleteOld(),
    ];
  }
}
