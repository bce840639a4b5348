import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LOG, type Log } from '#observability';
import { SubscriptionsRepository } from './subscriptions.repository.js';

const HOUR_MS = 3_600_000;
/** Until Kafka has deleted what the emitter emitted before its end (libs/contracts/src/topics.ts). */
const KEEP_DAYS = 8;

/** Deletes subscriptions to deleted emitters when no event can be left to which they apply. */
@Injectable()
export class EndedSubscriptions {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly subscriptions: SubscriptionsRepository,
  ) {}

  @Interval(HOUR_MS)
  async deleteOld(): Promise<void> {
    try {
      await this.subscriptions.deleteEnded(KEEP_DAYS);
    } catch (error) {
      this.log.warn({ err: error }, 'ended-subscriptions.not-deleted');
    }
  }
}
