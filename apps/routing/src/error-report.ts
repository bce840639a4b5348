import { createHash } from 'node:crypto';
import { type EmitterId, ksuid, type UserId } from '#contracts';
import { type Cause, errorEventJson, ERRORS_STREAM, eventIdOf, type EventPlace, eventRecord, type EventToProduce } from '#events';

/** An error that routing reports on the `$errors` stream of an emitter. Times are ISO 8601. */
export interface ErrorReport {
  emitterId: EmitterId;
  code: string;
  message: string;
  ts: string;
  emitId: string;
  originalEvent: unknown;
  context: { id: string; ts: string; [name: string]: unknown };
  ownerId?: UserId;
  hops?: number;
  cause?: Cause;
}

/** The record of the event on the emitter's `$errors`. */
export function errorReport({
  emitterId,
  code,
  message,
  ts,
  emitId,
  originalEvent,
  context,
  ownerId,
  hops,
  cause,
}: ErrorReport): EventToProduce {
  const json = errorEventJson({
    ...{ code, message, stack: `${code}: ${message}`, ts, originalEvent },
    context: {
      ...context,
      workflow_id: emitterId.startsWith('p_') ? emitterId : null,
      source_id: emitterId.startsWith('dc_') ? emitterId : null,
      owner_id: ownerId,
    },
  });
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId, json, time: ts, hops, cause });
}

/** The emit id of a report about the record at this place: a repeated report is the same emit. */
export function reportEmitId(code: string, place: EventPlace): string {
  const named = createHash('md5').update(`${code} ${eventIdOf(place)}`);
  return ksuid(place.ms, named.digest());
}
