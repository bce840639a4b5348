import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LOG, type Log } from '#observability';
import { QuotasRepository } from './quotas/quotas.repository.js';
import { RunsRepository } from './runs/runs.repository.js';

const HOUR_MS = 3_600_000;
/** A run may be repeated until Kafka has deleted its record, after a week. */
const KEEP_RUNS_DAYS = 8;

/** Deletes the rows that nobody looks at any more. */
@Injectable()
export class Housekeeping {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly runs: RunsRepository,
    private readonly quotas: QuotasRepository,
  ) {}

  @Interval(HOUR_MS)
  async deleteOld(): Promise<void> {
    try {
      await Promise.all([this.runs.forgetDone(KEEP_RUNS_DAYS), this.runs.forgetOfDeleted(), this.quotas.forgetOld()]);
    } catch (error) {
      this.log.warn({ err: error }, 'housekeeping.failed');
    }
  }
}
