import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { WaitingEmitsRepository } from './waiting-emits.repository.js';

const BATCH = 500;
const EVERY_MS = 250;

/** Emits what has waited for its `delivery_ts`. */
@Injectable()
export class Releaser implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly waiting: WaitingEmitsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    await this.work;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      let released = 0;
      try {
        released = await this.waiting.release(BATCH);
      } catch (error) {
        this.log.warn({ err: error }, 'waiting-emits.interrupted');
      }
      if (released < BATCH) await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}
