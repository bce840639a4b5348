import { hash } from 'node:crypto';
import { errorRaised, type UserId } from '#contracts';
import { type EmittedEvent, ERRORS_STREAM, eventIdOf, readErrorEvent } from '#events';
import { recordOf, type OutgoingRecord } from '#messaging';

/** The fact of an event on `$errors`, from which its owner gets a mail; undefined for any other event. */
export function errorFact(event: EmittedEvent, ownerId: UserId): OutgoingRecord | undefined {
  if (event.stream !== ERRORS_STREAM) return undefined;
  const { code, message } = readErrorEvent(event.json);
  const fact = {
    // made of the emit: a producer's retry raises no second error
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
