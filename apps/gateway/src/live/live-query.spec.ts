import { describe, expect, it } from '@jest/globals';
import { Invalid } from '#contracts';
import { lastEventIdOf, resumePlace } from './live-query.js';

describe('the place after which a stream is resumed', () => {
  it.each([
    [undefined, undefined, null],
    ['', '', null],
    ['1-2', undefined, { ms: 1, seq: 2 }],
    [undefined, '1-2', { ms: 1, seq: 2 }],
    ['', '1-2', { ms: 1, seq: 2 }],
    ['3-4', '1-2', { ms: 3, seq: 4 }],
    ['3-4', 'not looked at', { ms: 3, seq: 4 }],
  ])('Last-Event-ID %j and after %j: %j', (header, after, place) => expect(resumePlace(header, after)).toEqual(place));
});

describe('the header Last-Event-ID', () => {
  it.each([undefined, '', '1-2'])('may be %j', (header) => expect(lastEventIdOf(header)).toBe(header));

  it.each(['x', '1-2-3', '01-2', '1-02', '1-99999999999999999', '1-2, 3-4'])('cannot be %j', (header) => {
    const message = 'Last-Event-ID must be an event id, <milliseconds>-<sequence>';
    expect(() => lastEventIdOf(header)).toThrow(new Invalid([{ field: 'Last-Event-ID', message }]));
  });
});
