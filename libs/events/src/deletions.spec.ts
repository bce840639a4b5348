import { expect, it } from '@jest/globals';
import type { EventDeletion } from '#contracts';
import { isDeleted } from './deletions.js';

const deletion = (more: Partial<EventDeletion>): EventDeletion => ({ stream: null, start_id: null, end_id: null, at_id: '50-1', ...more });

it.each<[boolean, string, Partial<EventDeletion>, string]>([
  [true, '', {}, 'of every stream'],
  [false, '', { at_id: '10-1' }, 'that came before the event'],
  [true, '', { stream: '' }, 'of the stream'],
  [false, 'mine', { stream: '' }, 'of another stream'],
  [true, 'mine', { stream: '*' }, 'of the default stream and all custom ones'],
  [false, '$errors', { stream: '*' }, 'of the default stream and all custom ones, for a reserved stream'],
  [true, '', { start_id: '20-2', end_id: '20-2' }, 'of exactly this event'],
  [false, '', { start_id: '20-3' }, 'of later events'],
  [false, '', { end_id: '20-1' }, 'of earlier events'],
])('returns %s for an event of the stream "%s" and a deletion %j, %s', (expected, stream, more) => {
  expect(isDeleted([deletion(more)], stream, { ms: 20, seq: 2 })).toBe(expected);
});
