import { describe, expect, it } from '@jest/globals';
import { codeBlocks, fileOf, onlyReads, outputLines, outputPattern } from './code-blocks.mjs';

const fence = '```';
const markdown = `# Title

${fence}sh
echo one
${fence}

Text with ${fence}sh in it.

${fence}js file=a/b.mjs
export const a = \`\`;
${fence}

${fence}text output
one
${fence}
`;

describe('the code blocks of a document', () => {
  it('have a line, a language, a mark and their text', () => {
    expect(codeBlocks(markdown)).toEqual([
      { line: 3, language: 'sh', mark: '', text: 'echo one\n' },
      { line: 9, language: 'js', mark: 'file=a/b.mjs', text: 'export const a = ``;\n' },
      { line: 13, language: 'text', mark: 'output', text: 'one\n' },
    ]);
  });

  it('name the file that they are written to', () => {
    expect(codeBlocks(markdown).map(fileOf)).toEqual([undefined, 'a/b.mjs', undefined]);
  });

  it.each([
    ['npx sluice events orders\nnpx sluice deliveries inbox\n', true],
    ['api "$SLUICE_URL/v1/users/me"\n', true],
    ['npx sluice publish orders -d 1\nnpx sluice events orders\n', false],
    ['npx sluice events orders -f &\n', false],
    ['api "$SLUICE_URL/v1/sources" -d "{}"\n', false],
  ])('are repeated if they only read: %j', (text, expected) => {
    expect(onlyReads({ line: 1, language: 'sh', mark: '', text })).toBe(expected);
  });
});

describe('the output that a document shows', () => {
  const output = `${outputLines('npm warn Unknown user config\n\n200 {"success":true}\nreceived {"order":17}\n2026-01-31  1-0  $logs  done\n').join('\n')}\n`;

  it.each([
    ['200 {"success":true}\nreceived {"order":17}\n', true],
    ['200 …\nreceived …\n', true],
    ['…\nreceived {"order":17}\n', true],
    ['…\n…  $logs  done\n', true],
    ['200 …\n…\n…  $logs  done\n', true],
    // left-out lines, and parts of lines, without a mark
    ['received {"order":17}\n', false],
    ['200 {"success":true}\n…  $logs  done\nreceived …\n', false],
    ['200 …\n2026…  $logs  done\n', false],
    ['…\nreceived\n', false],
    ['…\n{"order":17}\n', false],
  ])('marks what it leaves out: %j is accepted: %s', (shown, accepted) => {
    expect(outputPattern(shown).test(output)).toBe(accepted);
  });
});
