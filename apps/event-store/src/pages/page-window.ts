import { type FieldProblem, Invalid, type PageRequest } from '#contracts';
import { type EventPlace, parseEventId } from '#events';

/** The part of a stream between two places, both exclusive. */
export interface PageWindow {
  newerThan: EventPlace;
  olderThan: EventPlace;
  /** At which end of it the page begins when it holds more than `limit`. */
  from: 'newest' | 'oldest';
  limit: number;
}

const BEFORE_ALL: EventPlace = { ms: -1, seq: -1 };
const AFTER_ALL: EventPlace = { ms: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/**
 * What the cursors of a request stand for. Events are newest first, so `after` walks to older ones and `before` to newer
 * ones; `before` alone asks for those directly before the cursor. Cursors are places: their events need not exist.
 */
export function pageWindow({ limit, after, before }: Pick<PageRequest, 'limit' | 'after' | 'before'>): PageWindow {
  const problems: FieldProblem[] = [];
  const place = (field: 'after' | 'before', cursor: string | undefined): EventPlace | null => {
    if (cursor === undefined) return null;
    const parsed = parseEventId(cursor);
    if (!parsed) problems.push({ field, message: `${field} must be the id of an event` });
    return parsed;
  };
  const [older, newer] = [place('after', after), place('before', before)];
  if (problems.length > 0) throw new Invalid(problems);
  return { olderThan: older ?? AFTER_ALL, newerThan: newer ?? BEFORE_ALL, from: newer && !older ? 'oldest' : 'newest', limit };
}
