import type { Target } from '../../webhooks/target.js';
import type { Attempt, Delivery } from '../delivery.js';
import { Inject, Injectable } from '@nestjs/common';
import { errorRaised, EVENTS_TOPIC, ksuid, type UserId } from '#contracts';
import { eventIdOf, type EventToProduce, isErrorEvent, originalEvent } from '#events';
import { recordOf } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { NoticesRepository } from './notices.repository.js';
import { errorReport } from '../../error-report.js';

/** Who is told of deliveries that fail for good. */
export abstract class Notices {
  /** A delivery was given up: its emitter's `$errors` says so, once per webhook and hour. */
  abstract gaveUp(target: Target, delivery: Delivery, last: Attempt | undefined): Promise<void>;
  /** A webhook was switched off: its owner is told. */
  abstract switchedOff(target: Target, why: 'gone' | 'failing'): Promise<void>;
}

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

const CODE = 'DeliveryFailed';

/**
 * What an emitter's `$errors` says of a delivery that was given up; undefined of a delivery of such a report: a listener on
 * `$errors` that fails would hear of its own failures for ever.
 */
export function failureReport(delivery: Delivery, ownerId: UserId, last: Attempt | undefined): EventToProduce | undefined {
  if (isErrorEvent(delivery, CODE)) return undefined;
  const { webhookId, emitterId, place, stream, emitId, json } = delivery;
  const reason = last ? (last.error ?? `the receiver returned ${last.status_code}`) : 'no attempt could be made in time';
  return errorReport({
    emitterId,
    code: CODE,
    message: `the event ${eventIdOf(place)} could not be delivered to ${webhookId}: ${reason}`,
    ts: new Date().toISOString(),
    emitId: ksuid(),
    originalEvent: originalEvent(json),
    context: {
      id: emitId,
      ts: new Date(place.ms).toISOString(),
      event_id: eventIdOf(place),
      event_name: stream,
      webhook_id: webhookId,
    },
    ownerId,
  });
}
