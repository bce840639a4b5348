import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { checkJson, NotJson } from './json-text.js';

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const isTaken = (text: string, deepest = Infinity): boolean => {
  try {
    checkJson(Buffer.from(text), deepest);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(NotJson);
    return false;
  }
};

describe('the check of JSON', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"',
    '\\',
    '\\u00',
    '1',
    '0',
    '-',
    '.',
    'e',
    'E+',
    'true',
    'nul',
    'null',
    ' ',
    '\n',
    '\t',
    'é',
    '\u0001',
  ];
  const nearlyJson = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''));
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom(...pieces), fc.boolean())
    .map(
      ([json, at, piece, replaces]) =>
        json.slice(0, at % (json.length + 1)) + piece + json.slice((at % (json.length + 1)) + (replaces ? 1 : 0)),
    );

  it.each([
    ['nearly JSON', nearlyJson],
    ['JSON', fc.json()],
    ['JSON with a change', broken],
    ['anything', fc.string({ unit: 'binary' })],
  ])('takes what JSON.parse takes: %s', (_, texts) => {
    fc.assert(
      fc.property(texts, (text) => expect([text, isTaken(text)]).toEqual([text, isJson(text)])),
      { numRuns: 1000, seed: 1 },
    );
  });

  it.each([
    ['[[1]]', 2, true],
    ['[[1]]', 1, false],
    ['[{"a":[]}]', 2, false],
    ['[1,[2],{"a":"[[[["}]', 2, true],
    ['1', 0, true],
  ])('%s with %i levels: %s', (text, deepest, taken) => {
    expect(isTaken(text, deepest)).toBe(taken);
  });

  it('takes any depth without recursion', () => {
    const deep = '['.repeat(1e6) + ']'.repeat(1e6);
    expect(isTaken(deep)).toBe(true);
  });

  it.each([
    ['[1 2]', 'a comma is missing at byte 3'],
    ['{"a" 1}', 'a colon is missing at byte 5'],
    ['{a:1}', 'a name is missing at byte 1'],
    ['[nul]', 'unexpected character at byte 1'],
    ['[01]', 'a number begins with 0 at byte 1'],
    ['"a\n"', 'a string has a control character at byte 2'],
    ['"\\x"', 'a string has an unknown escape at byte 1'],
    ['["a', 'the string at byte 1 has no end'],
    ['[', 'it ends too early'],
    ['1 2', 'more than one value: the second one is at byte 2'],
    ['[[[]]]', 'the event is nested deeper than 2 levels'],
  ])('states what is wrong with %s', (text, message) => {
    expect(() => checkJson(Buffer.from(text), 2)).toThrow(message);
  });
});
