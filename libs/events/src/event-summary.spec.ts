import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { truncateEvent, WHOLE_UP_TO } from './event-summary.js';

const truncated = (json: string): unknown => JSON.parse(truncateEvent(Buffer.from(json)).toString('utf8'));
const long = 'x'.repeat(2000);

describe('a truncated event', () => {
  it.each([
    ['keeps the leading members that fit', `{"a":1,"b":{"c":[1,2]},"long":"${long}","d":2}`, { a: 1, b: { c: [1, 2] }, $truncated: true }],
    ['may contain only the mark', `{"long":"${long}"}`, { $truncated: true }],
    ['omits a member whose key does not fit', `{"a":1,"${long}":1}`, { a: 1, $truncated: true }],
    ['skips whitespace', ` {\n "a" : [ 1 , 2 ] ,\t"long":"${long}" } `, { a: [1, 2], $truncated: true }],
    [
      'contains our mark instead of the event’s member of that name',
      `{"$truncated":false,"a":1,"\\u0024truncated":"x","long":"${long}"}`,
      { a: 1, $truncated: true },
    ],
    [
      'of an array has its first elements under value',
      `[1,"two",{"three":[3]},"${long}",5]`,
      { value: [1, 'two', { three: [3] }], $truncated: true },
    ],
    ['of an array is empty if the first element is too long', `["${long}"]`, { value: [], $truncated: true }],
    ['of a number with many digits contains only the mark', '1'.repeat(2000), { $truncated: true }],
    ['of a word in much whitespace contains the word', `${' '.repeat(2000)}true`, { value: true, $truncated: true }],
    ['ignores quotes and brackets in strings', `{"a":"}\\"],{","long":"${long}"}`, { a: '}"],{', $truncated: true }],
  ])('%s', (_, json, expected) => {
    expect(truncated(json)).toEqual(expected);
  });

  it('a truncated string has its beginning under value, cut between characters', () => {
    for (const character of ['x', 'é', '€', '😀', '\\n', '\\u20ac', '\\ud83d\\ude00']) {
      for (let shift = 0; shift < 12; shift++) {
        const json = `"${'.'.repeat(shift)}${character.repeat(2000)}"`;
        const { value } = truncated(json) as { value: string };
        expect((JSON.parse(json) as string).startsWith(value)).toBe(true);
        expect(value.isWellFormed()).toBe(true);
        expect(truncateEvent(Buffer.from(json)).length).toBeGreaterThan(WHOLE_UP_TO - 12);
      }
    }
  });

  it('is computed in no time from a megabyte of members with the name of our mark', async () => {
    const json = Buffer.from(`{${Array(60_000).fill('"$truncated":0').join(',')},"a":1}`);
    const truncated = () => Array.from({ length: 100 }, () => truncateEvent(json));
    expect(await cpuSeconds(truncated)).toBeLessThan(1);
    expect(truncateEvent(json).toString('utf8')).toBe('{"$truncated":true}');
  });

  it('is computed without recursion from arrays nested half a million levels deep', () => {
    expect(truncated('['.repeat(500_000) + ']'.repeat(500_000))).toEqual({ value: [], $truncated: true });
  });

  it('is an object of at most 1 KB with the same beginning as the event', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const json = Buffer.from(JSON.stringify(value, null, indent));
        const result = truncateEvent(json);
        expect(result.length).toBeLessThanOrEqual(WHOLE_UP_TO);
        const { $truncated, ...shown } = JSON.parse(result.toString('utf8')) as Record<string, unknown>;
        expect($truncated).toBe(true);
        const original = JSON.parse(json.toString('utf8')) as unknown;
        if (original === null || typeof original !== 'object') {
          if ('value' in shown)
            expect(typeof original === 'string' ? original.startsWith(shown.value as string) : shown.value === original).toBe(true);
        } else if (Array.isArray(original)) {
          expect(original.slice(0, (shown.value as unknown[]).length)).toEqual(shown.value);
        } else {
          for (const [key, member] of Object.entries(shown)) expect((original as Record<string, unknown>)[key]).toEqual(member);
        }
      }),
      { numRuns: 500 },
    );
  });
});
