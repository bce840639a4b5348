import { expect, it } from '@jest/globals';
import { printable } from './printable.js';

it.each([
  ['text in any language', 'ä\u2028 日本\n\tx', 'ä\u2028 日本\n\tx'],
  ['an escape sequence', 'a\u001b[2Jb\u0007', 'a\\u001b[2Jb\\u0007'],
  ['a return to the beginning of the line', 'a\rb', 'a\\u000db'],
  ['a control sequence introducer of 8 bits', 'a\u009b2Jb\u007f', 'a\\u009b2Jb\\u007f'],
])('shows %s', (_, text, shown) => {
  expect(printable(text)).toBe(shown);
});

it('does not change the value of JSON', () => {
  const value = { text: '\u009b\u007f\u0000\n' };
  expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value);
});
