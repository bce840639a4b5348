import { Inject, Injectable } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { DueWork } from '../due-work.js';
import { RetriedRunsRepository } from './retried-runs.repository.js';

const BATCH = 500;
const EVERY_MS = 1000;

/** Requests the further attempts of failed runs when they are due. They take their turn behind the runs that the source already has. */
@Injectable()
export class Retrier extends DueWork {
  constructor(
    private readonly retried: RetriedRunsRepository,
    @Inject(LOG) log: Log,
  ) {
    super(log, { batch: BATCH, everyMs: EVERY_MS, failure: 'retries.interrupted' });
  }

  release(): Promise<number> {
    return this.retried.release(BATCH);
  }
}
