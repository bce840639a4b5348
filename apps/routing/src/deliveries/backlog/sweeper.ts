import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { gauge, LOG, type Log } from '#observability';
import { RoutingConfig } from '../../routing.config.js';
import { Notices } from '../notices.js';
import { scheduleLength } from '../attempt/retry-schedule.js';
import { ParkedDeliveriesRepository } from '../store/parked-deliveries.repository.js';
import { Targets } from '../receivers/targets.js';

const EVERY_MS = 60_000;
/** Allows for the schedule's jitter and for an attempt that waits for its lane. */
const GRACE = 1.25;

const sweptAt = gauge('deliveries_swept_timestamp_seconds', 'Time of the last sweep of old deliveries.');

/** Gives up deliveries that have waited too long for a failing receiver, and deletes those that were given up long ago. */
@Injectable()
export class Sweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private sweeping: Promise<void> = Promise.resolve();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly targets: Targets,
    private readonly notices: Notices,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.sweeping = this.sweeping.then(() => this.sweep());
    }, EVERY_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.sweeping;
  }

  /** Never throws: the next sweep retries. */
  async sweep(): Promise<void> {
    try {
      const waitedMs = scheduleLength(this.config.retrySchedule) * GRACE + EVERY_MS;
      for (let more = true; more;) {
        const expired = await this.parked.giveUpExpired(waitedMs);
        more = expired.more;
        if (expired.count > 0) this.log.warn({ deliveries: expired.count, webhooks: expired.examples.length }, 'deliveries.expired');
        for (const delivery of expired.examples) {
          const target = await this.targets.get(delivery.webhookId);
          if (target) await this.notices.gaveUp(target, delivery, undefined);
        }
      }
      while ((await this.parked.deleteGivenUp(this.config.failedKeptMs)) > 0);
      sweptAt.setToCurrentTime();
    } catch (error) {
      this.log.warn({ err: error }, 'sweep.interrupted');
    }
  }
}
