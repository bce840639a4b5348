import { setImmediate as nextTurn } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { type RunRequest, executeRun, type SourceId, type UserId } from '#contracts';
import { FAIR_BATCH_ROWS } from '#database';
import { recordOf } from '#messaging';
import { LOG, type Log } from '#observability';
import { addToOutbox } from '#outbox';
import { DueWork } from '#due-work';
import { WaitingData } from '#waiting-data';
import { firstTick, nextTick, phaseOf, timerEvent } from './next-tick.js';
import { type DueTimer, tickRunId, TimersRepository } from './timers.repository.js';

/** Ticks that are computed before other work of the main thread has its turn; the tick of a cron expression can take up to a millisecond. */
const SLICE = 20;
const HOUR_MS = 3_600_000;
/** A clock may be set back this far: a tick does not come again for that. */
const TOLERANCE_MS = 60_000;
/** The timers that are corrected at a time. */
const CORRECTED = 500;

/**
 * Turns due timers into runs; the tick and the request for its run are one transaction. A timer does not tick while its run is in progress: all ticks
 * that it misses become one tick afterwards. Nor does it tick while the waiting data of its account has reached its limit: its runs would add to it.
 * While many timers are due, their accounts take turns.
 */
@Injectable()
export class Ticker extends DueWork {
  private correction: Promise<void> = Promise.resolve();

  constructor(
    private readonly timers: TimersRepository,
    private readonly own: WaitingData,
    @Inject(LOG) log: Log,
  ) {
    super(timers, log, { batch: FAIR_BATCH_ROWS, failure: 'timers.interrupted' });
  }

  override msToNext(): Promise<number | null> {
    return this.timers.msToNext(this.full());
  }

  handleDue(): Promise<number> {
    return this.timers.claimDue(this.full(), async (transaction, due, now) => {
      await addToOutbox(
        transaction,
        due.map((timer) => ({ ...recordOf(executeRun, tickRun(timer), timer.owner_id), account: timer.owner_id })),
      );
      const ticks: (Date | null)[] = [];
      for (const { source_id, prop, schedule, next_run_at } of due) {
        if (ticks.length % SLICE === SLICE - 1) await nextTurn();
        const next = nextTick(schedule, phaseOf(source_id, prop), next_run_at, now);
        if (!next) this.log.warn({ source_id, prop }, 'timer.ended');
        ticks.push(next);
      }
      return ticks;
    });
  }

  override onApplicationBootstrap(): void {
    super.onApplicationBootstrap();
    void this.correct();
  }

  /** While the clock of the database was ahead, ticks may have been set that are far too late. They would keep their timers silent for as long. */
  @Interval(HOUR_MS)
  correct(): Promise<void> {
    this.correction = this.correctAll().catch((error: Error) => this.log.warn({ err: error }, 'timers.not-corrected'));
    return this.correction;
  }

  private async correctAll(): Promise<void> {
    let corrected = 0;
    let after = { source_id: '' as SourceId, prop: '' };
    while (!this.stopping) {
      const timers = await this.timers.distant(after, CORRECTED);
      if (timers.length === 0) break;
      const ticks = [];
      for (const [index, { source_id, prop, schedule, next_run_at, now }] of timers.entries()) {
        if (index % SLICE === SLICE - 1) await nextTurn();
        const at = firstTick(schedule, phaseOf(source_id, prop), new Date(now.getTime() + TOLERANCE_MS));
        if (at && at < next_run_at) ticks.push({ source_id, prop, next_run_at, at });
      }
      if (ticks.length > 0) corrected += await this.timers.bringForward(ticks);
      after = timers.at(-1)!;
    }
    if (corrected > 0) this.log.warn({ timers: corrected, reason: 'the clock of the database was ahead' }, 'timers.corrected');
  }

  /** The pool of connections closes after this: a correction would fail. */
  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    await this.correction;
  }

  private full(): UserId[] {
    return this.own.list().map(({ owner_id }) => owner_id);
  }
}

/** Its event has the time of the tick, which differs from that of the tick before, however late either of them is. */
export const tickRun = (timer: DueTimer): RunRequest => ({
  // one tick is one run, even if it is requested twice
  run_id: tickRunId(timer),
  owner_id: timer.owner_id,
  source_id: timer.source_id,
  trigger: 'timer',
  event: JSON.stringify(timerEvent(timer.schedule, timer.next_run_at)),
  due_at_ms: timer.next_run_at.getTime(),
});
