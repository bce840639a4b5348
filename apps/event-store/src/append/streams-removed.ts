import { randomBytes } from 'node:crypto';
import { type EmitterId, ksuid, type UserId } from '#contracts';
import { errorReport, type EventToProduce } from '#events';
import { KEPT_STREAMS } from './append.repository.js';

const CODE = 'TooManyStreams';

/** The report on an emitter's `$errors` that its oldest streams were removed. */
export function streamsRemoved(emitterId: EmitterId, ownerId: UserId | undefined, now: Date): EventToProduce {
  const emitId = ksuid(now.getTime(), randomBytes(16));
  const message = `the emitter has more than ${KEPT_STREAMS} custom streams; the stored events of the oldest ones were removed`;
  return errorReport({ emitterId, code: CODE, message, ts: now.toISOString(), emitId, originalEvent: null, ownerId });
}
