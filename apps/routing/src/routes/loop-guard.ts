import { createHash } from 'node:crypto';
import {
  type EmittedEvent,
  ERRORS_STREAM,
  eventIdOf,
  type EventToProduce,
  eventRecord,
  ksuid,
  originalEvent,
  type UserId,
} from '#contracts';

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
  if (isLoopReport(event)) return undefined;
  const time = new Date(event.place.ms).toISOString();
  const message = `the event came through ${event.hops} sources and workflows: it triggers no more of them`;
  const report = {
    error: { code: CODE, cellId: null, ts: time, stack: `${CODE}: ${message}`, message },
    original_event: originalEvent(event.json),
    original_context: {
      id: event.emitId,
      ts: time,
      event_id: eventIdOf(event.place),
      event_name: event.stream,
      workflow_id: event.emitterId.startsWith('p_') ? event.emitterId : null,
      source_id: event.emitterId.startsWith('dc_') ? event.emitterId : null,
      owner_id: ownerId,
    },
  };
  const emitId = ksuid(
    event.place.ms,
    createHash('md5')
      .update(`${CODE} ${eventIdOf(event.place)}`)
      .digest(),
  );
  const json = Buffer.from(JSON.stringify(report));
  // with the hops of the event, so that it triggers nothing either
  return eventRecord({ emitterId: event.emitterId, stream: ERRORS_STREAM, emitId, json, time, hops: event.hops });
}

function isLoopReport({ stream, json }: EmittedEvent): boolean {
  if (stream !== ERRORS_STREAM) return false;
  const report = JSON.parse(json.toString('utf8')) as { error?: { code?: unknown } } | null;
  return report?.error?.code === CODE;
}
