import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { RetriedRunsRepository } from './retried-runs.repository.js';

const BATCH = 500;
const EVERY_MS = 1000;

/** Requests the further attempts of failed runs when they are due. They take their turn behind the runs that the source already has. */
@Injectable()
export class Retrier implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopping = new AbortController();
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly retried: RetriedRunsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run(this.stopping.signal);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.work;
  }

  private async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let released = 0;
      try {
        released = await this.retried.release(BATCH);
      } catch (error) {
        this.log.warn({ err: error }, 'retries.interrupted');
      }
      if (released < BATCH) await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }
}
