import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { gauge, LOG, type Log } from '#observability';
import { DatabaseRestores, Rounds } from '#service';
import { RoutingConfig } from '../../routing.config.js';
import { Notices } from '../notices.js';
import { longestSilence, MAX_REQUESTED_PROBE_MS, scheduleLength } from '../attempt/retry-schedule.js';
import { BacklogsRepository } from '../store/backlogs.repository.js';
import { ParkedDeliveriesRepository } from '../store/parked-deliveries.repository.js';
import { Targets } from '../receivers/targets.js';

const EVERY_MS = 60_000;
/** Allows for the schedule's jitter and for an attempt that waits for its lane. */
const GRACE = 1.25;
/** Until a failing receiver is probed that has requested a pause, and until that probe has ended. */
const PROBED_WITHIN_MS = MAX_REQUESTED_PROBE_MS + EVERY_MS;
/** No probe is set for a later time than in an hour; the rest is for a clock that is set back a little. */
const LONGEST_PROBE_MS = MAX_REQUESTED_PROBE_MS + 5 * EVERY_MS;

const sweptAt = gauge(
  'deliveries_swept_timestamp_seconds',
  'Time of the last sweep of old deliveries; before the first one, of the start.',
);
// not only when the stores respond
sweptAt.setToCurrentTime();

/**
 * Gives up deliveries that have waited too long for a failing receiver, and deletes those that were given up long ago or whose webhook was deleted. Makes attempts
 * due that were set while the clock of the database was ahead.
 */
@Injectable()
export class Sweeper implements OnApplicationShutdown {
  private stopping = false;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly config: RoutingConfig,
    private readonly restores: DatabaseRestores,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly backlogs: BacklogsRepository,
    private readonly targets: Targets,
    private readonly notices: Notices,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    this.stopping = true;
    // the one in progress
    await this.sweep();
  }

  @Rounds(EVERY_MS, 'sweep.interrupted')
  async sweep(): Promise<void> {
    if (this.stopping) return;
    await this.correct();
    while (!this.stopping && (await this.parked.deleteOfDeletedWebhooks()));
    const workedMs = scheduleLength(this.config.retrySchedule) * GRACE + EVERY_MS;
    // while Sluice was down, nothing could be attempted
    const unusedMs = await this.restores.unusedMs(Math.max(workedMs, PROBED_WITHIN_MS));
    const expiry = { parkedForMs: workedMs + unusedMs, dueForMs: PROBED_WITHIN_MS + unusedMs };
    for (let more = true; more && !this.stopping;) {
      const expired = await this.parked.findExpired(expiry);
      if (expired.length === 0) break;
      // first, because this process can end at any time. A report is stored once per hour, so it is not repeated then
      for (const delivery of expired) {
        const target = delivery.wasSuspended ? undefined : await this.targets.get(delivery.webhookId);
        if (target) await this.notices.expired(target, delivery, delivery.attempts.at(-1));
      }
      const webhooks = expired.map(({ webhookId }) => webhookId);
      const { count, more: mayBeMore } = await this.parked.giveUpExpired(expiry, webhooks);
      if (count > 0) this.log.warn({ deliveries: count, webhooks: webhooks.length }, 'deliveries.expired');
      more = mayBeMore;
    }
    while (!this.stopping && (await this.parked.deleteGivenUp(this.config.failedKeptMs)) > 0);
    if (!this.stopping) sweptAt.setToCurrentTime();
  }

  private async correct(): Promise<void> {
    const probes = await this.backlogs.correctProbes(LONGEST_PROBE_MS);
    let deliveries = 0;
    for (let count = 1; count > 0 && !this.stopping; deliveries += count)
      count = await this.parked.correctDeliveries(longestSilence(this.config.retrySchedule));
    if (probes + deliveries > 0) this.log.warn({ probes, deliveries }, 'retries.corrected');
  }
}
