import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LOG, type Log } from '#observability';
import { EndedEmittersRepository } from './ended-emitters.repository.js';

const INTERVAL_MS = 300_000;
/** Until Kafka has deleted what an emitter emitted before its end (libs/contracts/src/topics.ts). */
export const KEPT_DAYS = 8;
const KEPT = {
  days: KEPT_DAYS,
  /** Those of an account: it can create and delete sources all the time. */
  most: 100_000,
  /** Longer than a run of `deactivate` waits and takes. */
  minutes: 15,
};

/** Deletes subscriptions to deleted emitters when no event can be left to which they apply. */
@Injectable()
export class EndedSubscriptions {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly ended: EndedEmittersRepository,
  ) {}

  @Interval(INTERVAL_MS)
  async deleteOld(): Promise<void> {
    try {
      await this.ended.deleteSubscriptions(KEPT);
    } catch (error) {
      this.log.warn({ err: error }, 'ended-subscriptions.not-deleted');
    }
  }
}
