import { ksuid, type UserId } from '#contracts';
import { eventIdOf, type EventToProduce, isErrorEvent, originalEvent } from '#events';
import { errorReport } from '../error-report.js';
import type { Attempt, Delivery } from './delivery.js';

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
