import type { UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, type EventToProduce, isErrorEvent, originalEvent, spreadOver } from '#events';
import { errorReport, reportEmitId } from '../error-report.js';

/** The number of sources and workflows that an event may have passed through and still trigger another one. */
export const MAX_HOPS = 16;

/** How many events and runs one cause may become and still trigger sources and workflows: a tree as wide as it is deep would be 10 000^16. */
export const MAX_SPREAD = 10_000;

const CODE = 'LoopDetected';

type Path = Pick<EmittedEvent, 'hops' | 'cause'>;

/** Whether the event may trigger these sources and workflows. */
export const mayTrigger = (event: Path, triggered = 1): boolean => event.hops <= MAX_HOPS && !isTooWide(event, triggered);

/** Whether its cause would become too many runs. */
export const isTooWide = ({ cause }: Path, triggered: number): boolean => (cause?.spread ?? 1) * triggered > MAX_SPREAD;

/**
 * The report on the emitter's `$errors` about an event that triggers nothing because of its hops. Undefined for such a report: one loop would be reported
 * forever. A repeated report is the same emit.
 */
export function loopReport(event: EmittedEvent, ownerId: UserId, triggered = 1): EventToProduce | undefined {
  if (isErrorEvent(event, CODE)) return undefined;
  const { emitterId, emitId, place, stream, json, hops } = event;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: isTooWide(event, triggered)
      ? `one cause has become more than ${MAX_SPREAD} events and runs; its events trigger no more sources and workflows`
      : `the event passed through ${hops} sources and workflows; it triggers no more of them`,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalEvent(json),
    context: { id: emitId, ts, event_id: eventIdOf(place), event_name: stream },
    ownerId,
    // the hops of the event, so that the report triggers nothing either
    hops,
    ...(isTooWide(event, triggered) ? { cause: spreadOver(event.cause, MAX_SPREAD + 1, emitId) } : {}),
  });
}
