import { describe, expect, it } from '@jest/globals';
import { proseOf, testNames } from './prose.mjs';

describe('the prose of a file', () => {
  /** @param {string} file @param {string} text */
  const found = (file, text) =>
    proseOf(file, text)
      .filter((prose) => /\w/.test(prose.text))
      .map(({ line, text: prose }) => `${line} ${prose.trim()}`);

  it('consists of the comments and messages of code, without names and values', () => {
    const code = "/** Tells it.\n * More. */\nconst told = 'told'; // told\nthrow new Error(`told ${told} so`, 'is told');\n";
    expect(found('a.ts', code)).toEqual(['1 /** Tells it.', '2 * More. */', '3 // told', '4 `told ${', '4 } so`', "4 'is told'"]);
  });

  it('excludes the code in Markdown, and keeps the numbers of lines', () => {
    expect(found('a.md', 'one `told`\n```\ntold\n```\ntwo')).toEqual(['1 one ``', '5 two']);
  });

  it('is the whole text of other files', () => expect(found('a.yaml', 'a: b # c\n')).toEqual(['1 a: b # c']));
});

describe('the names of tests', () => {
  /** @param {string} text */
  const found = (text) =>
    testNames('a.spec.ts', text).map(({ line, name, described }) => `${line} ${name}${described ? ' (described)' : ''}`);

  it('names of it(), of tables and of methods are found', () => {
    const code = "it('one', f);\nit.each([1])('two %s', f);\nneeding('x').it(`three`, f);\nit.each`a`('four', f);";
    expect(found(code)).toEqual(['1 one', '2 two %s', '3 three', '4 four']);
  });

  it('a test in a describe is marked, and the name of the describe is none', () => {
    expect(found("needing('x').describe('group', () => { it('one', f); });\nit('two', f);")).toEqual(['1 one (described)', '2 two']);
  });
});
