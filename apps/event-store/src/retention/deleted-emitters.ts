import { Inject, Injectable } from '@nestjs/common';
import type { EmitterState } from '#contracts';
import type { Transaction } from '#database';
import { EmitterChangeHandler } from '#emitters';
import { LOG, type Log } from '#observability';
import { AppendRepository } from '../append/append.repository.js';

/** Deletes the events of a deleted emitter. The sweep finds events that are emitted in its name afterwards. */
@Injectable()
export class DeletedEmitters extends EmitterChangeHandler {
  constructor(
    private readonly events: AppendRepository,
    @Inject(LOG) private readonly log: Log,
  ) {
    super();
  }

  async emitterChanged(transaction: Transaction, state: EmitterState): Promise<void> {
    if (!state.deleted) return;
    const events = await this.events.deleteAll([state.emitter_id], transaction);
    this.log.info({ emitter_id: state.emitter_id, events }, 'emitter.events-deleted');
  }
}
