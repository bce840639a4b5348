import { createHash, hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { errorRaised, ksuid, type UserId } from '#contracts';
import {
  type EmittedEvent,
  errorReport,
  ERRORS_STREAM,
  eventIdOf,
  type EventPlace,
  type EventToProduce,
  type MalformedRecord,
  originalValue,
  readErrorEvent,
} from '#events';
import { type LogRecord, type OutgoingRecord, recordOf } from '#messaging';

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

const CODE = 'MalformedEvent';

/** The malformed records of an emitter that are reported in a minute: a producer of another format must not fill its `$errors`. */
export const REPORTED_PER_MINUTE = 100;

/** Counts the malformed records of each emitter, in minutes that begin with the first one. */
export class MalformedCounts {
  private readonly counts = new LRUCache<string, { records: number }>({ max: 10_000, ttl: 60_000 });

  /** Returns the number of this one in its minute. */
  count({ emitterId }: Pick<MalformedRecord, 'emitterId'>): number {
    const key = emitterId ?? '';
    const known = this.counts.get(key);
    if (known) return (known.records += 1);
    this.counts.set(key, { records: 1 });
    return 1;
  }
}

/**
 * The report on an emitter's `$errors` about a malformed record with its key. Undefined if the record names no emitter, or is on `$errors`. A
 * repeated report is the same emit.
 *
 * @param isLast whether those that follow in this minute are not reported
 */
export function malformedReport(
  record: LogRecord,
  { emitterId, place, reason }: MalformedRecord,
  { ownerId, isLast }: { ownerId: UserId | undefined; isLast: boolean },
): EventToProduce | undefined {
  if (emitterId === undefined || record.header('ce_type') === ERRORS_STREAM) return undefined;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: isLast ? `${reason}; more malformed records follow, which are not reported for a minute` : reason,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalValue(record.value),
    context: { event_id: eventIdOf(place) },
    ownerId,
  });
}
