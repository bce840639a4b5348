import { expect, it, jest } from '@jest/globals';
import { MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';
import { errorEventJson, isErrorEvent, originalEvent, originalValue, readErrorEvent } from './error-event.js';

const errorText = (event: unknown): string =>
  errorEventJson({ code: 'c', message: 'm', stack: 's', ts: 't', originalEvent: event, context: { id: 'i' } }).toString();
const errorOf = (event: unknown): unknown => JSON.parse(errorText(event));
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it.each([
  ['{"a":1}', { a: 1 }],
  [Buffer.from('null'), null],
  [nested(MAX_JSON_DEPTH - 1), JSON.parse(nested(MAX_JSON_DEPTH - 1))],
  [nested(MAX_JSON_DEPTH), { $truncated: true }],
  [`"${'ü'.repeat(260_000)}"`, 'ü'.repeat(260_000)],
  [`"${'ü'.repeat(270_000)}"`, { $truncated: true }],
])('originalEvent returns what an error can contain: case %#', (json, shown) => {
  const { original_event } = errorOf(originalEvent(json)) as { original_event: unknown };
  expect(original_event).toEqual(shown);
  expect(nestsTooDeeply({ original_event })).toBe(false);
});

it('an error contains its event as it was', () => {
  const error = { code: 'c', cellId: null, ts: 't', stack: 's', message: 'm' };
  expect(errorOf(originalEvent('{"a": [1.0]}'))).toEqual({ error, original_event: { a: [1] }, original_context: { id: 'i' } });
  expect(errorText(originalEvent('{"a": [1.0]}'))).toContain('"original_event":{"a": [1.0]},');
  expect(errorOf({ b: 1 })).toEqual({ error, original_event: { b: 1 }, original_context: { id: 'i' } });
  expect(errorOf(undefined)).toEqual({ error, original_context: { id: 'i' } });
});

it.each([
  [null, null],
  [Buffer.from('{"a":1}'), { a: 1 }],
  [Buffer.from('order 7 paid\0'), 'order 7 paid\0'],
  [Buffer.from([0xff, 0xfe]), { data_base64: '//4=' }],
  [Buffer.alloc(600_000, 'a'), { $truncated: true }],
  // a control character takes six bytes of JSON
  [Buffer.alloc(100_000), { $truncated: true }],
  [Buffer.from(nested(MAX_JSON_DEPTH)), { $truncated: true }],
])('originalValue returns what an error can contain of a record that is not an event: case %#', (value, shown) => {
  expect((errorOf(originalValue(value)) as { original_event: unknown }).original_event).toEqual(shown);
});

it.each([
  ['{"error":{"code":"E","message":"m"}}', 'E', 'm'],
  ['{"error":{"name":"TypeError","stack":"TypeError: x\\n at y"}}', 'TypeError', 'TypeError: x'],
  ['{"code":"E","message":"m","error":null}', 'E', 'm'],
  ['{ "error" : "it \\u0062roke" }', 'Error', 'it broke'],
  ['"text"', 'Error', 'text'],
  ['{"error":{"code":"","message":1}}', 'Error', '{"error":{"code":"","message":1}}'],
  ['[1,2]', 'Error', '[1,2]'],
  ['{"error":{"code":"A","c\\u006fde":"B","message":"\\"}{"}}', 'B', '"}{'],
  [`["${'ü'.repeat(600)}"]`, 'Error', `["${'ü'.repeat(498)}`],
])('an event on $errors is read without being parsed: case %#', (text, code, message) => {
  const json = Buffer.from(text);
  expect(readErrorEvent(json)).toEqual({ code, message });
  const parse = jest.spyOn(JSON, 'parse');
  isErrorEvent({ stream: '$errors', json: Buffer.from('{"error":{"code":"X"},"a":{}}') }, 'X');
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});

it.each([
  ['{"error":{"code":"X"}}', '$errors', true],
  ['{"error":{"code":"Y"}}', '$errors', false],
  ['{"code":"X"}', '$errors', false],
  ['null', '$errors', false],
  ['{"error":{"code":"X"}}', '', false],
])('the event %s of the stream %j is the error X: %j', (json, stream, is) => {
  expect(isErrorEvent({ stream, json: Buffer.from(json) }, 'X')).toBe(is);
});
