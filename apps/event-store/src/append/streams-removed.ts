import { randomBytes } from 'node:crypto';
import { type EmitterId, ksuid, type UserId } from '#contracts';
import { errorContext, errorEventJson, ERRORS_STREAM, eventRecord, type EventToProduce } from '#events';
import { KEPT_STREAMS } from './append.repository.js';

const CODE = 'TooManyStreams';

/** The report on an emitter's `$errors` that its oldest streams were removed. */
export function streamsRemoved(emitterId: EmitterId, ownerId: UserId | undefined, now: Date): EventToProduce {
  const emitId = ksuid(now.getTime(), randomBytes(16));
  const ts = now.toISOString();
  const message = `the emitter has more than ${KEPT_STREAMS} custom streams; the stored events of the oldest ones were removed`;
  const context = errorContext({ id: emitId, ts, emitterId, sourceType: 'event', ownerId });
  const json = errorEventJson({ code: CODE, message, stack: `${CODE}: ${message}`, ts, originalEvent: null, context });
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId, json, time: ts });
}
