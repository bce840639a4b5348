import { Inject, Injectable } from '@nestjs/common';
import { errorRaised, EVENTS_TOPIC, ksuid } from '#contracts';
import { eventIdOf } from '#events';
import { recordOf } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import type { Attempt, Delivery } from './delivery.js';
import { failureReport } from './failure-report.js';
import { Notices } from './notices.js';
import { NoticesRepository } from './notices.repository.js';
import type { Target } from './target.js';

const gaveUpTotal = counter('deliveries_given_up_total', 'Deliveries that failed for good.');
const switchedOffTotal = counter(
  'webhooks_switched_off_total',
  'Webhooks that were switched off because their receiver failed or is gone.',
  ['reason'],
);

const TELL_EVERY_MS = 3_600_000;

/** Tells by `$errors` and by the fact from which the owner gets a mail. Never throws: who delivers goes on. */
@Injectable()
export class OwnerNotices extends Notices {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly repository: NoticesRepository,
  ) {
    super();
  }

  async gaveUp({ ownerId }: Target, delivery: Delivery, last: Attempt | undefined): Promise<void> {
    const { webhookId, emitterId, place } = delivery;
    gaveUpTotal.inc();
    this.log.warn({ webhook_id: webhookId, owner_id: ownerId, emitter_id: emitterId, event_id: eventIdOf(place) }, 'delivery.given-up');
    const report = failureReport(delivery, ownerId, last);
    if (!report) return;
    await this.tell(webhookId, () => this.repository.sendOnceIn(TELL_EVERY_MS, webhookId, { topic: EVENTS_TOPIC, ...report }));
  }

  async switchedOff({ id, ownerId, origin }: Target, why: 'gone' | 'failing'): Promise<void> {
    switchedOffTotal.inc({ reason: why });
    this.log.warn({ webhook_id: id, owner_id: ownerId, reason: why }, 'webhook.switched-off');
    const reason = why === 'gone' ? 'its receiver returned 410 Gone' : 'its receiver has failed for days';
    const fact = {
      id: ksuid(),
      owner_id: ownerId,
      subject_id: id,
      code: 'WebhookDisabled',
      message: `The webhook ${id} (${origin}) was switched off: ${reason}.`,
      raised_at_ms: Date.now(),
    };
    await this.tell(id, () => this.repository.send(recordOf(errorRaised, fact, ownerId)));
  }

  private async tell(webhookId: string, send: () => Promise<unknown>): Promise<void> {
    try {
      await send();
    } catch (error) {
      this.log.warn({ webhook_id: webhookId, err: error }, 'notice.not-sent');
    }
  }
}
