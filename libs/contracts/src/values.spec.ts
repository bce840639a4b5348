import { expect, it } from '@jest/globals';
import { validateSync } from 'class-validator';
import { IsText, jsonNestsTooDeeply, MAX_JSON_DEPTH, nestsTooDeeply } from './values.js';

class Named {
  @IsText() name: unknown;
}
class Short {
  @IsText(3) name: unknown;
}

it.each([
  ['ä😀', undefined],
  ['', undefined],
  ['a\0', 'name must not contain a NUL character or an unpaired surrogate'],
  ['a\ud83d', 'name must not contain a NUL character or an unpaired surrogate'],
  ['\ude00\ud83d', 'name must not contain a NUL character or an unpaired surrogate'],
  [5, 'name must be a string'],
  [null, 'name must be a string'],
  [undefined, 'name is required'],
])('IsText: the name %j', (name, problem) => {
  expect(validateSync(Object.assign(new Named(), { name }))[0]?.constraints?.isText).toBe(problem);
});

it.each([
  ['😀😀😀', undefined],
  ['abcd', 'name must be at most 3 characters long'],
  ['x'.repeat(1_000_000), 'name must be at most 3 characters long'],
  ['a\0', 'name must not contain a NUL character or an unpaired surrogate'],
  [5, 'name must be a string'],
])('IsText of at most 3 characters: the name %j', (name, problem) => {
  expect(validateSync(Object.assign(new Short(), { name }))[0]?.constraints?.isText).toBe(problem);
});

const arrays = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const objects = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels) + '0' + '}'.repeat(levels));

it.each([
  [5, false],
  [null, false],
  [[], false],
  [arrays(MAX_JSON_DEPTH), false],
  [objects(MAX_JSON_DEPTH), false],
  [arrays(MAX_JSON_DEPTH + 1), true],
  [objects(MAX_JSON_DEPTH + 1), true],
  [[[], {}, 'x', objects(MAX_JSON_DEPTH)], true],
  [arrays(500_000), true],
])('nestsTooDeeply decides case %#', (value, tooDeep) => expect(nestsTooDeeply(value)).toBe(tooDeep));

const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it.each([
  ['5', false],
  [lists(MAX_JSON_DEPTH), false],
  [lists(MAX_JSON_DEPTH + 1), true],
  ['{"a":'.repeat(MAX_JSON_DEPTH + 1) + '0' + '}'.repeat(MAX_JSON_DEPTH + 1), true],
  [`[${Array(300).fill('{}').join()}]`, false],
  [JSON.stringify(`"\\"[`.repeat(300)), false],
  [`["\\\\",${lists(MAX_JSON_DEPTH)}]`, true],
])('jsonNestsTooDeeply decides case %#', (json, tooDeep) => {
  expect(jsonNestsTooDeeply(json)).toBe(tooDeep);
  expect(nestsTooDeeply(JSON.parse(json))).toBe(tooDeep);
});
