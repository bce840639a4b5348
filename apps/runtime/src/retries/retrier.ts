import { Inject, Injectable } from '@nestjs/common';
import { FAIR_BATCH_ROWS } from '#database';
import { LOG, type Log } from '#observability';
import { DueWork } from '#due-work';
import { RetriedRunsRepository } from './retried-runs.repository.js';

/** Requests the further attempts of failed runs when they are due. They take their turn behind the runs that the source already has. */
@Injectable()
export class Retrier extends DueWork {
  constructor(
    private readonly retried: RetriedRunsRepository,
    @Inject(LOG) log: Log,
  ) {
    super(retried, log, { batch: FAIR_BATCH_ROWS, failure: 'retries.interrupted' });
  }

  handleDue(): Promise<number> {
    return this.retried.release();
  }
}
