import { Inject, Injectable } from '@nestjs/common';
import { errorRaised, EVENTS_TOPIC, ksuid, type UserId } from '#contracts';
import { Database } from '#database';
import { errorReport, eventIdOf, isErrorEvent, originalEvent } from '#events';
import { recordOf } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import type { AccountRecord } from '#outbox';
import { WEBHOOK_DISABLED } from '../error-records.js';
import type { Target } from './receivers/targets.js';
import { WebhooksRepository } from '../webhooks/webhooks.repository.js';
import type { Attempt, Delivery } from './delivery.js';
import type { Failed } from './store/delivery-store.js';

/** Why a webhook was disabled: its receiver has returned 410, or has failed for days. */
export type DisabledWhy = 'gone' | 'failing';

/** Reports deliveries that have failed for good. Never throws, so that deliveries continue. */
export abstract class Notices {
  /** A delivery was given up after an attempt, together with its report (`failureReportOf`). */
  abstract gaveUp(target: Target, delivery: Delivery): void;
  /** A delivery is being given up because it has waited too long: reported on its emitter's `$errors`, at most once per webhook and hour. */
  abstract expired(target: Target, delivery: Delivery, last: Attempt | undefined): Promise<void>;
  /** A webhook was disabled, together with its `disabledReports`. */
  abstract disabled(target: Target, why: DisabledWhy): void;
}

const disabledTotal = counter('webhooks_disabled_total', 'Webhooks that were disabled because their receiver failed or is gone.', [
  'reason',
]);

/** Reports by an event on `$errors`. */
@Injectable()
export class OwnerNotices extends Notices {
  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly database: Database,
    private readonly webhooks: WebhooksRepository,
  ) {
    super();
  }

  gaveUp({ ownerId }: Target, { webhookId, emitterId, place }: Delivery): void {
    this.log.warn({ webhook_id: webhookId, account_id: ownerId, emitter_id: emitterId, event_id: eventIdOf(place) }, 'delivery.given-up');
  }

  async expired(target: Target, delivery: Delivery, last: Attempt | undefined): Promise<void> {
    this.gaveUp(target, delivery);
    const report = failureReport(target, delivery, last);
    if (!report) return;
    try {
      await this.database.transaction((transaction) => this.webhooks.reportFailure(transaction, target.id, report));
    } catch (error) {
      this.log.warn({ webhook_id: target.id, err: error }, 'notice.not-sent');
    }
  }

  disabled({ id, ownerId }: Target, why: DisabledWhy): void {
    disabledTotal.inc({ reason: why });
    this.log.warn({ webhook_id: id, account_id: ownerId, reason: why }, 'webhook.disabled');
  }
}

/**
 * The records about a webhook that is disabled, stored in the transaction that disables it: the fact that the gateway mails to the owner, and an event on
 * the `$errors` of the emitter whose delivery has failed last.
 */
export function disabledReports({ id, ownerId, origin }: Target, why: DisabledWhy, delivery: Delivery): AccountRecord[] {
  const reason = why === 'gone' ? 'its receiver returned 410 Gone' : 'its receiver has failed for days';
  const message = `The webhook ${id} (${origin}) was disabled: ${reason}.`;
  const fact = { id: ksuid(), owner_id: ownerId, subject_id: id, code: WEBHOOK_DISABLED, message, raised_at_ms: Date.now() };
  const event = deliveryReport(delivery, ownerId, WEBHOOK_DISABLED, message);
  return [{ ...recordOf(errorRaised, fact, ownerId), account: ownerId }, event];
}

const CODE = 'DeliveryFailed';

/**
 * The event on the emitter's `$errors` about a delivery that was given up. Undefined if the delivery carries such a report: a failing listener on
 * `$errors` would receive its own failures forever.
 */
function failureReport({ ownerId }: Target, delivery: Delivery, last: Attempt | undefined): AccountRecord | undefined {
  if (isErrorEvent(delivery, CODE)) return undefined;
  const reason = last ? (last.error ?? `the receiver returned ${last.status_code}`) : 'no attempt could be made in time';
  const message = `the event ${eventIdOf(delivery.place)} could not be delivered to ${delivery.webhookId}: ${reason}`;
  return deliveryReport(delivery, ownerId, CODE, message);
}

/** The report about the first of these deliveries, which are given up, that has one, to be stored with their outcomes. */
export function failureReportOf(target: Target, givenUp: Failed[]): AccountRecord | undefined {
  for (const { delivery, attempts } of givenUp) {
    const report = failureReport(target, delivery, attempts.at(-1));
    if (report) return report;
  }
  return undefined;
}

/** An error event about a delivery, on the `$errors` of its emitter. */
function deliveryReport(delivery: Delivery, ownerId: UserId, code: string, message: string): AccountRecord {
  const { webhookId, emitterId, place, stream, emitId, json } = delivery;
  const event = errorReport({
    emitterId,
    code,
    message,
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
  return { topic: EVENTS_TOPIC, ...event, account: ownerId };
}
