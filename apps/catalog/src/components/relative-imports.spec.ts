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
    ["// import a from './a.mjs'", []],
    ["/* import a from './a.mjs' */", []],
    ["const url = 'https://example.com/x'; import a from './a.mjs'", ['./a.mjs']],
    ["import a from './a.mjs'; import again from './a.mjs'", ['./a.mjs']],
  ])('of %s', (code, expected) => expect(relativeImports(code)).toEqual(expected));
});

describe('candidates', () => {
  it('of a full name is that name', () => expect(candidates('./a.mjs')).toEqual(['./a.mjs']));
  it('of a bare name are the usual endings', () => expect(candidates('../lib')).toContain('../lib/index.js'));
});
