import { expect, it } from '@jest/globals';
import { MAX_JSON_DEPTH, nestsTooDeeply } from './values.js';

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
