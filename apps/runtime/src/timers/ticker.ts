import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { type RunRequest, executeRun } from '#contracts';
import { recordOf } from '#messaging';
import { LOG, type Log } from '#observability';
import { addToOutbox } from '#outbox';
import { nextTick, phaseOf, timerEvent } from './next-tick.js';
import { type DueTimer, tickRunId, TimersRepository } from './timers.repository.js';

const BATCH = 500;
/** The longest pause: a timer that is set in the meantime waits at most this long. The shortest: ticks that are close together share a transaction. */
const NAP_MS = { least: 50, most: 250 };

/**
 * Turns due timers into runs; the tick and the request for its run are one transaction. A timer does not tick while its run is in progress: all ticks
 * that it misses become one tick afterwards.
 */
@Injectable()
export class Ticker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly timers: TimersRepository,
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
      let nap = NAP_MS.most;
      try {
        const ms = (await this.timers.msToNext()) ?? NAP_MS.most;
        const isFull = ms <= 0 && (await this.tick()) === BATCH;
        nap = isFull ? 0 : Math.min(NAP_MS.most, Math.max(NAP_MS.least, ms));
      } catch (error) {
        this.log.warn({ err: error }, 'timers.interrupted');
      }
      await sleep(nap);
    }
  }

  private tick(): Promise<number> {
    return this.timers.claimDue(BATCH, async (transaction, due) => {
      const now = new Date();
      await addToOutbox(
        transaction,
        due.map((timer) => recordOf(executeRun, tickRun(timer, now), timer.owner_id)),
      );
      return due.map(({ source_id, prop, schedule, next_run_at }) => nextTick(schedule, phaseOf(source_id, prop), next_run_at, now));
    });
  }
}

const tickRun = (timer: DueTimer, now: Date): RunRequest => ({
  // one tick is one run, even if it is requested twice
  run_id: tickRunId(timer),
  owner_id: timer.owner_id,
  source_id: timer.source_id,
  trigger: 'timer',
  event: JSON.stringify(timerEvent(timer.schedule, now)),
  due_at_ms: timer.next_run_at.getTime(),
});
