import { expect, it } from '@jest/globals';
import { isSatisfied, readSpecifier } from './package-specifier.js';

it.each([
  ['luxon', { name: 'luxon', range: null, path: '' }],
  ['luxon@3.4.4', { name: 'luxon', range: '3.4.4', path: '' }],
  ['lodash@^4.17.20', { name: 'lodash', range: '^4.17.20', path: '' }],
  ['@octokit/core@next', { name: '@octokit/core', range: 'next', path: '' }],
  ['@octokit/core/dist/x.js', { name: '@octokit/core', range: null, path: '/dist/x.js' }],
  ['lodash@4/get', { name: 'lodash', range: '4', path: '/get' }],
  ['lodash/get@4', { name: 'lodash', range: '4', path: '/get' }],
  ['lodash@4/get@4', null],
  ['luxon@file:/etc', null],
  ['luxon@npm:other', null],
  ['luxon@http://x/y.tgz', null],
  ['git+https://example.com/x.git', null],
  ['luxon/../other', null],
  ['luxon/\0', null],
  ['luxon/\ud800', null],
  ['@scope', null],
  ['a b', null],
  [`${'a'.repeat(215)}`, null],
  [`luxon@${'1 '.repeat(32)}1`, null],
])('reads the import of %s', (specifier, expected) => expect(readSpecifier(specifier)).toEqual(expected));

it.each([
  [null, '1.2.3', true],
  ['^1.2', '1.2.3', true],
  ['1.2.4', '1.2.3', false],
  ['0.19.2', '1.21.1', false],
  ['latest', '1.2.3', false],
])('decides whether %s is satisfied by %s: %s', (range, version, expected) => expect(isSatisfied(range, version)).toBe(expected));
