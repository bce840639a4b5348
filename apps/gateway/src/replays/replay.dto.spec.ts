import { describe, expect, it } from '@jest/globals';
import { type CreateReplayBody, requestedReplay } from './replay.dto.js';

const BODY: CreateReplayBody = { emitter_id: 'dc_1', listener_id: 'wh_1', from: '5-1', to: '9-2' };
const part = (more: object) => requestedReplay({ ...BODY, ...more });

describe('the part of the log that a replay reads', () => {
  it.each([
    [{}, { stream: '', from_id: '5-1', to_id: '9-2' }],
    [{ event_name: 'default' }, { stream: '', from_id: '5-1', to_id: '9-2' }],
    [
      { event_name: '*', from: 0 },
      { stream: '*', from_id: '0-0', to_id: '9-2' },
    ],
    [
      { from: '2026-01-31T12:00:00Z', to: 1_769_861_200 },
      { stream: '', from_id: '1769860800000-0', to_id: '1769861200999-9007199254740991' },
    ],
    [
      { from: '1769861200500-7', to: 1_769_861_200 },
      { stream: '', from_id: '1769861200500-7', to_id: '1769861200999-9007199254740991' },
    ],
    [{ to: '2026-01-31T12:00:00+01:00' }, { stream: '', from_id: '5-1', to_id: '1769857200999-9007199254740991' }],
    [{ to: '2026-01-31T12:00:00.25Z' }, { stream: '', from_id: '5-1', to_id: '1769860800250-9007199254740991' }],
    [{ to: 1_769_860_800.5 }, { stream: '', from_id: '5-1', to_id: '1769860800500-9007199254740991' }],
  ])('%j selects %j', (more, expected) => expect(part(more)).toMatchObject(expected));

  it('names an end that is missing as required', () => {
    expect(() => part({ from: undefined, to: null })).toThrow(
      'from is required: an event id, or a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds; to is required: an event id, or a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds',
    );
    expect(() => part({ from: 'yesterday' })).toThrow(
      'from must be an event id, or a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds, not "yesterday"',
    );
  });

  it.each([
    [{ from: 'yesterday' }, ['from']],
    [{ from: undefined, to: {} }, ['from', 'to']],
    [{ from: '9-3' }, ['to']],
    [{ from: -1 }, ['from']],
    [{ event_name: '$in' }, ['event_name']],
    [{ emitter_id: 'wh_1', listener_id: 'sc_1' }, ['emitter_id', 'listener_id']],
    [
      { emitter_id: 1, listener_id: null, event_name: 5, from: null, to: 'x', dry_run: 1 },
      ['emitter_id', 'listener_id', 'event_name', 'from', 'to', 'dry_run'],
    ],
  ])('%j is refused because of %j', (more, fields) => {
    try {
      part(more);
      throw new Error('it was accepted');
    } catch (error) {
      expect((error as { details?: { errors: { field: string }[] } }).details?.errors.map(({ field }) => field)).toEqual(fields);
    }
  });
});
