import { Inject, Injectable } from '@nestjs/common';
import type { WaitingEmit } from '#contracts';
import { FAIR_BATCH_ROWS } from '#database';
import { LOG, type Log } from '#observability';
import { DueWork } from '#due-work';
import { WaitingEmitsRepository } from './waiting-emits.repository.js';
import { WithdrawnEmits } from './withdrawn-emits.js';

/** Emits waiting events at their `delivery_ts`, except those deleted from `$in` in the meantime. While the event store does not reply, nothing is emitted. */
@Injectable()
export class Releaser extends DueWork {
  /** After a failure: the emits of each source are a request, so that one for which the store takes too long does not hold up the others. */
  private isApart = false;

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
    const parts = this.isApart ? [...Map.groupBy(due, ({ emitter_id }) => emitter_id).values()] : [due];
    const released = await Promise.allSettled(parts.map((emits) => this.release(emits)));
    const failure = released.find((each) => each.status === 'rejected');
    this.isApart = failure !== undefined;
    if (failure) throw failure.reason;
    return released.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value : 0), 0);
  }

  private async release(emits: WaitingEmit[]): Promise<number> {
    const withdrawn = await this.withdrawn.among(emits);
    const { emitted, dropped } = await this.waiting.release(emits, withdrawn);
    if (dropped > 0) this.log.info({ emitted, dropped }, 'waiting-emits.withdrawn');
    return emitted + dropped;
  }
}
