import { Inject, Injectable } from '@nestjs/common';
import { findWithdrawnEmits, type WaitingEmitKey } from '#contracts';
import { Messages } from '#messaging';
import { FAIR_BATCH_ROWS } from '#database';
import { LOG, type Log } from '#observability';
import { DueWork } from '#due-work';
import { WaitingEmitsRepository } from './waiting-emits.repository.js';

/** Shorter than the shutdown timeout of a process. */
const ASK_TIMEOUT_MS = 5000;

/**
 * Emits waiting events at their `delivery_ts`, except those deleted from `$in` in the meantime. Only the store knows the deletions, because they are
 * records of the topic; while it does not reply, nothing is emitted.
 */
@Injectable()
export class Releaser extends DueWork {
  constructor(
    private readonly waiting: WaitingEmitsRepository,
    private readonly messages: Messages,
    @Inject(LOG) log: Log,
  ) {
    super(waiting, log, { batch: FAIR_BATCH_ROWS, failure: 'waiting-emits.interrupted' });
  }

  /** Emits the next due events. Returns their number, without those that another replica handles, or that are being deleted. */
  async handleDue(): Promise<number> {
    const due = await this.waiting.due();
    if (due.length === 0) return 0;
    const withdrawn = await this.withdrawn(due);
    const { emitted, dropped } = await this.waiting.release(due, withdrawn);
    if (dropped > 0) this.log.info({ emitted, dropped }, 'waiting-emits.withdrawn');
    return emitted + dropped;
  }

  private async withdrawn(emits: WaitingEmitKey[]): Promise<WaitingEmitKey[]> {
    const key = emits[0]?.emitter_id ?? '';
    return this.messages.request(findWithdrawnEmits, { emits }, { key, timeoutMs: ASK_TIMEOUT_MS });
  }
}
