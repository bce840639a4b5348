import { Inject, Injectable } from '@nestjs/common';
import { FAIR_BATCH_ROWS } from '#database';
import { LOG, type Log } from '#observability';
import { DueWork } from '#due-work';
import { WaitingEmitsRepository } from './waiting-emits.repository.js';
import { WithdrawnEmits } from './withdrawn-emits.js';

/** Emits waiting events at their `delivery_ts`, except those deleted from `$in` in the meantime. While the event store does not reply, nothing is emitted. */
@Injectable()
export class Releaser extends DueWork {
  constructor(
    private readonly waiting: WaitingEmitsRepository,
    private readonly withdrawn: WithdrawnEmits,
    @Inject(LOG) log: Log,
  ) {
    super(waiting, log, { batch: FAIR_BATCH_ROWS, failure: 'waiting-emits.interrupted' });
  }

  /** Emits the next due events. Returns their number, without those that another replica handles, or that are being deleted. */
  async handleDue(): Promise<number> {
    const due = await this.waiting.due();
    if (due.length === 0) return 0;
    const withdrawn = await this.withdrawn.among(due);
    const { emitted, dropped } = await this.waiting.release(due, withdrawn);
    if (dropped > 0) this.log.info({ emitted, dropped }, 'waiting-emits.withdrawn');
    return emitted + dropped;
  }
}
