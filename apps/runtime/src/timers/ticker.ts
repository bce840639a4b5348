import { setImmediate as nextTurn } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { type RunRequest, executeRun, type UserId } from '#contracts';
import { FAIR_BATCH_ROWS } from '#database';
import { recordOf } from '#messaging';
import { LOG, type Log } from '#observability';
import { addToOutbox } from '#outbox';
import { DueWork } from '#due-work';
import { WaitingData } from '#waiting-data';
import { nextTick, phaseOf, timerEvent } from './next-tick.js';
import { type DueTimer, tickRunId, TimersRepository } from './timers.repository.js';

/** Ticks that are computed before other work of the main thread has its turn; the tick of a cron expression can take up to a millisecond. */
const SLICE = 20;

/**
 * Turns due timers into runs; the tick and the request for its run are one transaction. A timer does not tick while its run is in progress: all ticks
 * that it misses become one tick afterwards. Nor does it tick while the waiting data of its account has reached its limit: its runs would add to it.
 * While many timers are due, their accounts take turns.
 */
@Injectable()
export class Ticker extends DueWork {
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
