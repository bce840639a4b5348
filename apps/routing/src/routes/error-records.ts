import { hash } from 'node:crypto';
import { errorRaised, type UserId } from '#contracts';
import { type EmittedEvent, ERRORS_STREAM, eventIdOf, type EventToProduce, type MalformedRecord, originalValue, readErrorEvent } from '#events';
import { type LogRecord, type OutgoingRecord, recordOf } from '#messaging';
import { errorReport, reportEmitId } from '../error-report.js';

/** The fact of an event on `$errors`, which the gateway mails to its owner; undefined for any other event. */
export function errorFact(event: EmittedEvent, ownerId: UserId): OutgoingRecord | undefined {
  if (event.stream !== ERRORS_STREAM) return undefined;
  const { code, message } = readErrorEvent(event.json);
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

const CODE = 'MalformedEvent';

/**
 * The report on an emitter's `$errors` about a malformed record with its key. Undefined if the emitter is unknown, or the record is on `$errors`. A
 * repeated report is the same emit.
 */
export function malformedReport(record: LogRecord, { emitterId, place, reason }: MalformedRecord): EventToProduce | undefined {
  if (emitterId === undefined || record.header('ce_type') === ERRORS_STREAM) return undefined;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: reason,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalValue(record.value),
    context: { id: eventIdOf(place), ts },
  });
}
