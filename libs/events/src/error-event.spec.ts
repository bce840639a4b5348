import { expect, it } from '@jest/globals';
import { MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';
import { originalEvent } from './error-event.js';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it.each([
  ['{"a":1}', { a: 1 }],
  [Buffer.from('null'), null],
  [nested(MAX_JSON_DEPTH - 1), JSON.parse(nested(MAX_JSON_DEPTH - 1))],
  [nested(MAX_JSON_DEPTH), { $truncated: true }],
  [`"${'ü'.repeat(130_000)}"`, 'ü'.repeat(130_000)],
  [`"${'ü'.repeat(140_000)}"`, { $truncated: true }],
])('originalEvent returns what an error can contain: case %#', (json, shown) => {
  expect(originalEvent(json)).toEqual(shown);
  expect(nestsTooDeeply({ original_event: originalEvent(json) })).toBe(false);
});
