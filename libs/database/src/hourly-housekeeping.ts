import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type { Log } from '#observability';

const HOUR_MS = 3_600_000;

/** Deletes rows that nothing reads any more: once an hour, and at the start, because the process may end within an hour. */
export abstract class HourlyHousekeeping implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;

  protected constructor(private readonly log: Log) {}

  /** They follow each other. One that fails is repeated an hour later. */
  protected abstract deletions(): (() => Promise<unknown>)[];

  onApplicationBootstrap(): void {
    void this.deleteOld();
  }

  /** Begins no further deletion. The pool of connections waits for the one in progress when it closes. */
  beforeApplicationShutdown(): void {
    this.stopping = true;
  }

  @Interval(HOUR_MS)
  async deleteOld(): Promise<void> {
    for (const deletion of this.deletions()) {
      try {
        if (!this.stopping) await deletion();
      } catch (error) {
        if (!this.stopping) this.log.warn({ err: error }, 'housekeeping.failed');
      }
    }
  }
}
