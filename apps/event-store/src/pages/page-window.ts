import { type FieldProblem, Invalid, type PageRequest } from '#contracts';
import { type EventPlace, parseEventId } from '#events';

/** The part of a stream between two places, both exclusive. */
export interface PageWindow {
  newerThan: EventPlace;
  olderThan: EventPlace;
  /** The end at which the page begins if the part has more than `limit` events. */
  from: 'newest' | 'oldest';
  limit: number;
}

const BEFORE_ALL: EventPlace = { ms: -1, seq: -1 };
const AFTER_ALL: EventPlace = { ms: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/**
 * The part of the stream that the cursors of a request select. Events are newest first, so `after` walks to older events and `before` to newer ones;
 * `before` alone selects the events directly before the cursor. Cursors are places, whose events need not exist.
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
