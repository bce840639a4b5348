import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { checkJsonText, countTokens, depthOf, NotJson } from './json-text.js';

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const isTaken = (text: string, deepest?: number): boolean => {
  try {
    checkJsonText(text, deepest);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(NotJson);
    return false;
  }
};

describe('the check of JSON text', () => {
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
});

describe('the count of tokens', () => {
  it.each([
    ['[]', 1],
    ['["a","b"]', 4],
    ['{"a":[1,2,{}]}', 6],
    ['"[,{"', 1],
    ['"\\",[{\\\\"', 1],
    ['["\\\\","x"]', 4],
  ])('of %s is %i', (text, tokens) => {
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
