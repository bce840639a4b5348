import { expect, it } from '@jest/globals';
import { printable } from './printable.js';

it.each([
  ['text in any language', 'ä 日本 שלום\n\tx', 'ä 日本 שלום\n\tx'],
  ['an escape sequence', 'a\u001b[2Jb\u0007', 'a\\u001b[2Jb\\u0007'],
  ['a return to the beginning of the line', 'a\rb', 'a\\u000db'],
  ['line breaks of Unicode', 'a\u2028b\u2029', 'a\\u2028b\\u2029'],
  ['changes of the direction of text', 'a\u202a\u202eb\u2066\u2069', 'a\\u202a\\u202eb\\u2066\\u2069'],
  ['a control sequence introducer of 8 bits', 'a\u009b2Jb\u007f', 'a\\u009b2Jb\\u007f'],
])('shows %s', (_, text, shown) => {
  expect(printable(text)).toBe(shown);
});

it('does not change the value of JSON', () => {
  const value = { text: '\u009b\u007f\u0000\n\u2028\u202e' };
  expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value);
});
