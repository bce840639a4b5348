import type { UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, type EventToProduce, isErrorEvent, originalEvent } from '#events';
import { errorReport, reportEmitId } from '../error-report.js';

/** The number of sources and workflows that an event may have passed through and still trigger another one. */
export const MAX_HOPS = 16;

const CODE = 'LoopDetected';

/** Whether the event may trigger sources and workflows. */
export const mayTrigger = ({ hops }: Pick<EmittedEvent, 'hops'>): boolean => hops <= MAX_HOPS;

/**
 * The report on the emitter's `$errors` about an event that triggers nothing because of its hops. Undefined for such a report: one loop would be reported
 * forever. A repeated report is the same emit.
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
    // the hops of the event, so that the report triggers nothing either
    hops,
  });
}
