import { createHash } from 'node:crypto';
import { ERRORS_STREAM, eventIdOf, type EventToProduce, eventRecord, ksuid, type MalformedRecord } from '#contracts';
import type { LogRecord } from '#messaging';

const CODE = 'MalformedEvent';

/**
 * What an emitter's `$errors` says of a record in its name that is no event; undefined where that can't be told, or is such an error
 * itself. Told of twice, it's the same emit.
 */
export function malformedReport(record: LogRecord, { emitterId, place, reason }: MalformedRecord): EventToProduce | undefined {
  if (emitterId === undefined || record.header('ce_type') === ERRORS_STREAM) return undefined;
  const time = new Date(place.ms).toISOString();
  const report = {
    error: { code: CODE, cellId: null, ts: time, stack: `${CODE}: ${reason}`, message: reason },
    original_event: { $truncated: true },
    original_context: {
      id: eventIdOf(place),
      ts: time,
      workflow_id: emitterId.startsWith('p_') ? emitterId : null,
      source_id: emitterId.startsWith('dc_') ? emitterId : null,
    },
  };
  const named = createHash('md5').update(`${CODE} ${eventIdOf(place)}`);
  const json = Buffer.from(JSON.stringify(report));
  return eventRecord({ emitterId, stream: ERRORS_STREAM, emitId: ksuid(place.ms, named.digest()), json, time });
}
