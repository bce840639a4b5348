import { Inject, Injectable } from '@nestjs/common';
import type { EmitterState } from '#contracts';
import type { Transaction } from '#database';
import type { EmitterListener } from '#emitters';
import { LOG, type Log } from '#observability';
import { RetentionRepository } from './retention.repository.js';

/** An emitter's events go when it goes. What is still emitted in its name afterwards is found by the sweep. */
@Injectable()
export class ForgetDeleted implements EmitterListener {
  constructor(
    private readonly events: RetentionRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  async emitterChanged(transaction: Transaction, state: EmitterState): Promise<void> {
    if (!state.deleted) return;
    const events = await this.events.removeAll([state.emitter_id], transaction);
    this.log.info({ emitter_id: state.emitter_id, events }, 'emitter.forgotten');
  }
}
