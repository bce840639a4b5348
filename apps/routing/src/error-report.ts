import { createHash } from 'node:crypto';
import {
  type EmitterId,
  ERRORS_STREAM,
  type EventPlace,
  eventIdOf,
  type EventToProduce,
  eventRecord,
  ksuid,
  type Stream,
  type UserId,
} from '#contracts';

/** An error that this room tells an emitter of. Times are ISO 8601. */
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
}

/** The event on the emitter's `$errors` that says so. */
export function errorReport({ emitterId, code, message, ts, emitId, originalEvent, context, ownerId, hops }: ErrorReport): EventToProduce {
  const report = {
    error: { code, cellId: null, ts, stack: `${code}: ${message}`, message },
    original_event: originalEvent,
    original_context: {
      ...context,
      workflow_id: emitterId.startsWith('p_') ? emitterId : null,
      source_id: emitterId.startsWith('dc_') ? emitterId : null,
      owner_id: ownerId,
    },
  };
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId, json: Buffer.from(JSON.stringify(report)), time: ts, hops });
}

/** The emit id of what is told of the record there: told of twice, it's the same emit. */
export function reportEmitId(code: string, place: EventPlace): string {
  const named = createHash('md5').update(`${code} ${eventIdOf(place)}`);
  return ksuid(place.ms, named.digest());
}

/** Whether the event is such a report itself: of those nothing is told, or it would go on for ever. */
export function isErrorReport({ stream, json }: { stream: Stream; json: Buffer }, code: string): boolean {
  if (stream !== ERRORS_STREAM) return false;
  const report = JSON.parse(json.toString('utf8')) as { error?: { code?: unknown } } | null;
  return report?.error?.code === code;
}
