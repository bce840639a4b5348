import { describe, expect, it, jest } from '@jest/globals';
import { countTokens, depthOf } from './json-text.js';

describe('the count of tokens', () => {
  it.each([
    ['[]', 1],
    ['["a","b"]', 4],
    ['{"a":[1,2,{}]}', 6],
    ['"[,{"', 1],
    ['"\\",[{\\\\"', 1],
    ['["\\\\","x"]', 4],
  ])('the count of tokens of %s is %i', (text, tokens) => {
    expect(countTokens(Buffer.from(text), Infinity)).toBe(tokens);
  });

  it('knows the end of long strings, with escapes or without', () => {
    const strings = [2000, 1023, 1024, 1025, 5000].flatMap((length) => [
      'x'.repeat(length),
      `${'x'.repeat(length)}"`,
      `${'x'.repeat(length)}\\`,
      `${'x'.repeat(length)}\\"${'y'.repeat(length)}",[{`,
    ]);
    for (const text of strings) expect(countTokens(Buffer.from(JSON.stringify([text, 1])), Infinity)).toBe(3);
  });

  it('searches each byte of a string once for its end, however many escapes are in it', () => {
    const bytes = Buffer.from(JSON.stringify(`${'x'.repeat(1030)}\n`.repeat(1000)));
    const indexOf = jest.spyOn(Buffer.prototype, 'indexOf');
    expect(countTokens(bytes, Infinity)).toBe(1);
    const searched = indexOf.mock.results.map(({ value }, n) => {
      const from = Number(indexOf.mock.calls[n]![1] ?? 0);
      return (Number(value) < 0 ? (indexOf.mock.contexts[n] as Buffer).length : Number(value)) - from;
    });
    indexOf.mockRestore();
    // once for a quote, and once for escapes
    expect(searched.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(2 * bytes.length);
  });

  it('ends as soon as there are too many', () => {
    expect(countTokens(Buffer.from('['.repeat(1e6)), 100)).toBe(101);
  });
});

it.each([
  ['1', 0],
  ['{}', 1],
  ['[[]]', 2],
  ['{"a":[1,{"b":2}],"c":[]}', 3],
  ['["[[[["]', 1],
  ['["\\"[[["]', 1],
  ['["\\\\",[1]]', 2],
])('%s is nested %d deep', (json, depth) => {
  expect(depthOf(json)).toBe(depth);
});
