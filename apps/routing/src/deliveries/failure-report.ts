import { ERRORS_STREAM, eventIdOf, type EventToProduce, eventRecord, ksuid, originalEvent, type UserId } from '#contracts';
import type { Attempt, Delivery } from './delivery.js';

const CODE = 'DeliveryFailed';

/** What an emitter's `$errors` says of a delivery that was given up; undefined of a delivery of such a report. */
export function failureReport(delivery: Delivery, ownerId: UserId, last: Attempt | undefined): EventToProduce | undefined {
  if (isFailureReport(delivery)) return undefined;
  const { webhookId, emitterId, place, stream, emitId, json } = delivery;
  const ts = new Date().toISOString();
  const reason = last ? (last.error ?? `the endpoint answered ${last.status_code}`) : 'the endpoint could not be tried in time';
  const message = `the event ${eventIdOf(place)} could not be delivered to ${webhookId}: ${reason}`;
  const report = {
    error: { code: CODE, cellId: null, ts, stack: `${CODE}: ${message}`, message },
    original_event: originalEvent(json),
    original_context: {
      id: emitId,
      ts: new Date(place.ms).toISOString(),
      event_id: eventIdOf(place),
      event_name: stream,
      webhook_id: webhookId,
      workflow_id: emitterId.startsWith('p_') ? emitterId : null,
      source_id: emitterId.startsWith('dc_') ? emitterId : null,
      owner_id: ownerId,
    },
  };
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId: ksuid(), json: Buffer.from(JSON.stringify(report)), time: ts });
}

/** A listener on `$errors` that fails would hear of its own failures for ever. */
function isFailureReport({ stream, json }: Delivery): boolean {
  if (stream !== ERRORS_STREAM) return false;
  const report = JSON.parse(json.toString('utf8')) as { error?: { code?: unknown } } | null;
  return report?.error?.code === CODE;
}
