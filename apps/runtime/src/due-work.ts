import { setTimeout as sleep } from 'node:timers/promises';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { Log } from '#observability';

interface Settings {
  /** The most that `release` handles at a time. */
  batch: number;
  /** The pause after a batch that was not full. */
  everyMs: number;
  /** The name of the log line when `release` fails. */
  failure: string;
}

/** Work in a table that becomes due: released in batches, and a full batch is followed by the next one at once. Replicas share the work. */
export abstract class DueWork implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopping = new AbortController();
  private work: Promise<void> = Promise.resolve();

  protected constructor(
    protected readonly log: Log,
    private readonly settings: Settings,
  ) {}

  /** Releases what is due, at most a batch, and returns how much it was. */
  abstract release(): Promise<number>;

  onApplicationBootstrap(): void {
    this.work = this.run(this.stopping.signal);
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.work;
  }

  private async run(signal: AbortSignal): Promise<void> {
    const { batch, everyMs, failure } = this.settings;
    while (!signal.aborted) {
      let released = 0;
      try {
        released = await this.release();
      } catch (error) {
        this.log.warn({ err: error }, failure);
      }
      if (released < batch) await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
}
