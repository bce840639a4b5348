import { expect, it } from '@jest/globals';
import { MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';
import { originalEvent, originalValue } from './error-event.js';

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

it.each([
  [null, null],
  [Buffer.from('{"a":1}'), { a: 1 }],
  [Buffer.from('order 7 paid\0'), 'order 7 paid\0'],
  [Buffer.from([0xff, 0xfe]), { data_base64: '//4=' }],
  [Buffer.alloc(300_000, 'a'), { $truncated: true }],
  // a control character takes six bytes of JSON
  [Buffer.alloc(100_000), { $truncated: true }],
  [Buffer.from(nested(MAX_JSON_DEPTH)), { $truncated: true }],
])('originalValue returns what an error can contain of a record that is not an event: case %#', (value, shown) => {
  expect(originalValue(value)).toEqual(shown);
});
