import { describe, expect, it } from '@jest/globals';
import { proseOf } from './prose.mjs';

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
