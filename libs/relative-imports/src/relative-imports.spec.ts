import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import { candidates, relativeImports } from './relative-imports.js';

describe('relativeImports', () => {
  it.each([
    ["import a from './a.mjs'", ['./a.mjs']],
    ['import { b } from "../b.js"', ['../b.js']],
    ["import './side-effect.js'", ['./side-effect.js']],
    ["const c = require('./c')", ['./c']],
    ["const d = await import('./d.mjs')", ['./d.mjs']],
    ["export * from './e.mjs'", ['./e.mjs']],
    ["import axios from 'axios'", []],
    ["import { a,\n  b } from '../b.mjs';\nimport c from '../b.mjs'", ['../b.mjs']],
    ["export * from './all.mjs'; export { x } from './x.mjs'", ['./all.mjs', './x.mjs']],
    ["const b = require ( './b.json' )", ['./b.json']],
    ["import axios from 'axios'; require('lodash'); './text'", []],
    ["import a from './a.mjs'; import again from './a.mjs'", ['./a.mjs']],
  ])('the relative imports of %s are found', (code, expected) => expect(relativeImports(code)).toEqual(expected));
});

it.each(['from', 'import', 'import (', 'require', 'require('])(
  'text that repeats what follows "%s" is read in linear time',
  async (beginning) => {
    const hostile = [' ', '\n', '"./', "'./a", './'].map((part) => beginning + part.repeat(500_000 / part.length));
    // the square of half a million would take minutes
    expect(await cpuSeconds(() => hostile.map(relativeImports))).toBeLessThan(3);
  },
);

describe('candidates', () => {
  it.each([
    ['./a.ts', './a.ts'],
    ['./a.json', './a.json'],
    ['./a.js', './a.js ./a.ts'],
    ['./a.mjs', './a.mjs ./a.mts'],
    ['./github.app', './github.app.ts ./github.app.mjs ./github.app.js ./github.app.json'],
    ['../lib', '../lib.ts ../lib.mjs ../lib.js ../lib.json'],
    ['../lib', '../lib/index.ts ../lib/index.mjs ../lib/index.js ../lib/index.json'],
    ['./lib/', './lib/index.ts ./lib/index.mjs ./lib/index.js ./lib/index.json'],
  ])('%s may be %s', (path, expected) => expect(candidates(path).join(' ')).toContain(expected));
});
