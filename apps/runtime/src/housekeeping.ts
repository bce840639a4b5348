import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LOG, type Log } from '#observability';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { RetriedRunsRepository } from './retries/retried-runs.repository.js';
import { RunsRepository } from './runs/runs.repository.js';
import { SourceStateRepository } from './source-state/source-state.repository.js';
import { WaitingEmitsRepository } from './waiting/waiting-emits.repository.js';

const HOUR_MS = 3_600_000;
/** A run may be repeated until Kafka has deleted its record, within eight days (libs/contracts/src/topics.ts). */
const KEEP_RUNS_DAYS = 8;

/** Deletes rows that are no longer read. */
@Injectable()
export class Housekeeping {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly runs: RunsRepository,
    private readonly quotas: QuotasRepository,
    private readonly retried: RetriedRunsRepository,
    private readonly waiting: WaitingEmitsRepository,
    private readonly state: SourceStateRepository,
  ) {}

  @Interval(HOUR_MS)
  async deleteOld(): Promise<void> {
    try {
      await Promise.all([
        this.runs.deleteDone(KEEP_RUNS_DAYS),
        this.runs.deleteOfDeleted(),
        this.retried.deleteOfDeleted(),
        this.waiting.deleteOfDeleted(),
        this.state.deleteOfDeleted(),
        this.quotas.deleteOld(),
      ]);
    } catch (error) {
      this.log.warn({ err: error }, 'housekeeping.failed');
    }
  }
}
