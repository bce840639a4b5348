import { ERRORS_STREAM, eventIdOf, type EventToProduce, type MalformedRecord } from '#events';
import type { LogRecord } from '#messaging';
import { errorReport, reportEmitId } from '../error-report.js';

const CODE = 'MalformedEvent';

/**
 * What an emitter's `$errors` says of a record in its name that is no event; undefined where that can't be told, or is such an error
 * itself. Told of twice, it's the same emit.
 */
export function malformedReport(record: LogRecord, { emitterId, place, reason }: MalformedRecord): EventToProduce | undefined {
  if (emitterId === undefined || record.header('ce_type') === ERRORS_STREAM) return undefined;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: reason,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: { $truncated: true },
    context: { id: eventIdOf(place), ts },
  });
}
