import { describe, expect, it } from '@jest/globals';
import { Invalid } from '#contracts';
import { resumePlace } from './live-query.js';

describe('the place after which a stream is resumed', () => {
  it.each([
    [undefined, undefined, null],
    ['', '', null],
    ['1-2', undefined, { ms: 1, seq: 2 }],
    [undefined, '1-2', { ms: 1, seq: 2 }],
    ['', '1-2', { ms: 1, seq: 2 }],
    ['3-4', '1-2', { ms: 3, seq: 4 }],
    ['3-4', 'not looked at', { ms: 3, seq: 4 }],
    [`${Date.now() + 600_000}-0`, '1-2', null],
  ])('Last-Event-ID %j and after %j: %j', (header, after, place) => expect(resumePlace(header, after)).toEqual(place));

  it.each([
    ['x', undefined, 'Last-Event-ID'],
    ['x', '1-2', 'Last-Event-ID'],
    [undefined, '1-2-3', 'after'],
    [undefined, '1-99999999999999999', 'after'],
  ])('Last-Event-ID %j and after %j: refused, naming %s', (header, after, field) => {
    expect(() => resumePlace(header, after)).toThrow(Invalid);
    expect(() => resumePlace(header, after)).toThrow(field);
  });
});
