import { createHash, hash } from 'node:crypto';
import { errorRaised, ksuid, type UserId } from '#contracts';
import { type EmittedEvent, ERRORS_STREAM, eventIdOf, type EventPlace, readErrorEvent } from '#events';
import { type OutgoingRecord, recordOf } from '#messaging';

/** The emit id of a report about the record at this place: a repeated report is the same emit. */
export function reportEmitId(code: string, place: EventPlace): string {
  const named = createHash('md5').update(`${code} ${eventIdOf(place)}`);
  return ksuid(place.ms, named.digest());
}

/** A webhook was disabled. Its owner gets a mail about the webhook, and none about the event on `$errors`. */
export const WEBHOOK_DISABLED = 'WebhookDisabled';

/** The fact of an event on `$errors`, which the gateway mails to its owner; undefined for any other event. */
export function errorFact(event: EmittedEvent, ownerId: UserId): OutgoingRecord | undefined {
  if (event.stream !== ERRORS_STREAM) return undefined;
  const { code, message } = readErrorEvent(event.json);
  if (code === WEBHOOK_DISABLED) return undefined;
  const fact = {
    // derived from the emit: a producer's retry does not raise a second error
    id: hash('sha256', `${event.emitterId}\n${event.emitId}`, 'hex').slice(0, 32),
    owner_id: ownerId,
    subject_id: event.emitterId,
    code,
    message,
    event_id: eventIdOf(event.place),
    raised_at_ms: event.place.ms,
  };
  return recordOf(errorRaised, fact, ownerId);
}
