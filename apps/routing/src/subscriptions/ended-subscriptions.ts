import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { RECORDS_GONE_AFTER_DAYS } from '#contracts';
import { LOG, type Log } from '#observability';
import { SubscriptionsRepository } from './subscriptions.repository.js';

const INTERVAL_MS = 300_000;
const KEPT = {
  /** Until Kafka has deleted the events from before their end. */
  days: RECORDS_GONE_AFTER_DAYS,
  /** Those of an account: it can create and delete sources and subscriptions all the time. */
  most: 100_000,
  /** Longer than a run of `deactivate` waits and takes. */
  minutes: 15,
};

/** Deletes subscriptions that have ended when no event can be left to which they apply. */
@Injectable()
export class EndedSubscriptions {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly subscriptions: SubscriptionsRepository,
  ) {}

  @Interval(INTERVAL_MS)
  async deleteOld(): Promise<void> {
    try {
      await this.subscriptions.deleteEnded(KEPT);
    } catch (error) {
      this.log.warn({ err: error }, 'ended-subscriptions.not-deleted');
    }
  }
}
