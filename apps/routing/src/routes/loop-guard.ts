import type { UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, type EventToProduce, isErrorEvent, originalEvent } from '#events';
import { errorReport, reportEmitId } from '../error-report.js';

/** How many sources and workflows an event may have come through and still trigger another one. */
export const MAX_HOPS = 16;

const CODE = 'LoopDetected';

/** Whether the event may trigger sources and workflows. */
export const mayTrigger = ({ hops }: Pick<EmittedEvent, 'hops'>): boolean => hops <= MAX_HOPS;

/**
 * What the emitter's `$errors` says of an event that triggers nothing any more; undefined for an event that says so
 * itself, or one loop would be told of for ever. Told of twice, it's the same emit.
 */
export function loopReport(event: EmittedEvent, ownerId: UserId): EventToProduce | undefined {
  if (isErrorEvent(event, CODE)) return undefined;
  const { emitterId, emitId, place, stream, json, hops } = event;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: `the event passed through ${hops} sources and workflows; it triggers no more of them`,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalEvent(json),
    context: { id: emitId, ts, event_id: eventIdOf(place), event_name: stream },
    ownerId,
    // those of the event, so that it triggers nothing either
    hops,
  });
}
