import { Inject, Injectable } from '@nestjs/common';
import { errorRaised, EVENTS_TOPIC, ksuid, type UserId } from '#contracts';
import { Database } from '#database';
import { eventIdOf, type EventToProduce, isErrorEvent, originalEvent } from '#events';
import { recordOf } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { addToOutbox } from '#outbox';
import { errorReport } from '../error-records.js';
import type { Target } from './receivers/targets.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import type { Attempt, Delivery } from './delivery.js';

/** Reports deliveries that have failed for good. Never throws, so that deliveries continue. */
export abstract class Notices {
  /** A delivery was given up: reported on its emitter's `$errors`, at most once per webhook and hour. */
  abstract gaveUp(target: Target, delivery: Delivery, last: Attempt | undefined): Promise<void>;
  /** A webhook was disabled: reported to its owner by mail. */
  abstract disabled(target: Target, why: 'gone' | 'failing'): Promise<void>;
}

const disabledTotal = counter('webhooks_disabled_total', 'Webhooks that were disabled because their receiver failed or is gone.', [
  'reason',
]);

const REPORT_EVERY_MS = 3_600_000;

/** Reports by an event on `$errors`, and by the fact that the gateway mails to the owner. */
@Injectable()
export class OwnerNotices extends Notices {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
  ) {
    super();
  }

  async gaveUp({ ownerId }: Target, delivery: Delivery, last: Attempt | undefined): Promise<void> {
    const { webhookId, emitterId, place } = delivery;
    this.log.warn({ webhook_id: webhookId, owner_id: ownerId, emitter_id: emitterId, event_id: eventIdOf(place) }, 'delivery.given-up');
    const report = failureReport(delivery, ownerId, last);
    if (!report) return;
    await this.report(webhookId, async () => {
      await this.database.transaction(async (transaction) => {
        if (await this.webhooks.beginFailureReport(transaction, webhookId, REPORT_EVERY_MS))
          await addToOutbox(transaction, [{ topic: EVENTS_TOPIC, ...report, account: ownerId }]);
      });
    });
  }

  async disabled({ id, ownerId, origin }: Target, why: 'gone' | 'failing'): Promise<void> {
    disabledTotal.inc({ reason: why });
    this.log.warn({ webhook_id: id, owner_id: ownerId, reason: why }, 'webhook.disabled');
    const reason = why === 'gone' ? 'its receiver returned 410 Gone' : 'its receiver has failed for days';
    const fact = {
      id: ksuid(),
      owner_id: ownerId,
      subject_id: id,
      code: 'WebhookDisabled',
      message: `The webhook ${id} (${origin}) was disabled: ${reason}.`,
      raised_at_ms: Date.now(),
    };
    await this.report(id, () =>
      this.database.transaction((transaction) => addToOutbox(transaction, [{ ...recordOf(errorRaised, fact, ownerId), account: ownerId }])),
    );
  }

  private async report(webhookId: string, send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      this.log.warn({ webhook_id: webhookId, err: error }, 'notice.not-sent');
    }
  }
}

const CODE = 'DeliveryFailed';

/**
 * The event on the emitter's `$errors` about a delivery that was given up. Undefined if the delivery carries such a report: a failing listener on
 * `$errors` would receive its own failures forever.
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
      ts: new Date(place.ms).toISOString(),
      event_id: eventIdOf(place),
      emit_id: emitId,
      event_name: stream,
      webhook_id: webhookId,
    },
    ownerId,
  });
}
