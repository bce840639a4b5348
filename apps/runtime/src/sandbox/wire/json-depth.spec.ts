import { expect, it } from '@jest/globals';
import { depthOf } from './json-depth.js';

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
