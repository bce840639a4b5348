import { expect, it } from '@jest/globals';
import { emailAddress, nameText } from './argument-texts.js';

const LONG = `${'a'.repeat(242)}@example.com`;

it.each(['owner@localhost', 'ä.b+c@example.com', LONG])('takes the address %s', (text) => expect(emailAddress(text)).toBe(text));

it.each([
  ['', 'not an email address'],
  ['example.com', 'not an email address'],
  [`a${LONG}`, 'at most 254 characters'],
  ['a\u001b[2J@example.com', 'control characters'],
  ['a@example.com\u0085', 'control characters'],
])('refuses the address %j', (text, problem) => expect(() => emailAddress(text)).toThrow(problem));

it.each(['ci', 'my laptop', '🔑'.repeat(255)])('takes the name %s', (text) => expect(nameText(text)).toBe(text));

it.each([
  ['', 'must not be empty'],
  ['a'.repeat(256), 'at most 255 characters'],
  ['two\nlines', 'control characters'],
])('refuses the name %j', (text, problem) => expect(() => nameText(text)).toThrow(problem));
