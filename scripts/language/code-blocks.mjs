/**
 * A fenced code block of a document. The word after the language says how a test treats it:
 *
 *     ```sh                     is executed, in one shell per document
 *     ```sh settings            sets variables; the test sets them to its own values instead
 *     ```sh install             downloads from a registry; skipped, with the rest of its document, if that registry does not respond
 *     ```sh start|docker|…      is not executed; SKIPPED has these marks
 *     ```js file=name.mjs       is written to that file (any language)
 *     ```text output            is the beginning of the output of the block before it, see `outputPattern`. A block that only reads is repeated until it is
 *
 * @typedef {object} CodeBlock
 * @property {number} line counts from 1
 * @property {string} language
 * @property {string} mark what follows the language; '' if nothing does
 * @property {string} text with its final line break
 */

/** Why a shell block is not executed, by its mark. */
export const SKIPPED = {
  start: 'starts Sluice, which the tests have done',
  docker: 'starts containers, as npm run test:compose does',
  kubernetes: 'needs a cluster, as npm run test:k8s does',
  operator: 'needs the stores, which are tested with the operator commands',
};

/** @param {string} markdown @returns {CodeBlock[]} */
export const codeBlocks = (markdown) =>
  [...markdown.matchAll(/^```(\S+)[ \t]*(.*)\n([^]*?)^```$/gm)].map(({ index, 1: language = '', 2: mark = '', 3: text = '' }) => ({
    line: markdown.slice(0, index).split('\n').length,
    language,
    mark: mark.trim(),
    text,
  }));

/** The file that a block is written to, if any. @param {CodeBlock} block */
export const fileOf = ({ mark }) => /^file=(\S+)$/.exec(mark)?.[1];

/** Whether a shell block only reads, so that repeating it is harmless: events and deliveries appear a moment after their cause. @param {CodeBlock} block */
export const onlyReads = ({ language, text }) =>
  language === 'sh' &&
  text
    .trim()
    .split('\n')
    .every((line) => /^(npx sluice (events|logs|errors|deliveries)\b(?!.* -f)|api "[^"]*"$)/.test(line));

/**
 * The pattern that an output has to match: these lines, one after the other. `…` stands for text that is left out of a line, and as a line for any lines. Output after
 * the last line needs no mark, because servers in the background may print at any time.
 * @param {string} shown the text of the block
 */
export const outputPattern = (shown) =>
  new RegExp(
    `^${outputLines(shown)
      .map((line) => (line.trim() === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(escape).join('.*')}\\n`))
      .join('')}`,
  );

/** The lines of an output, without empty lines and npm's remarks about its configuration. @param {string} output */
export const outputLines = (output) =>
  output
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && !/^npm (warn|notice)\b/.test(line));

/** @param {string} text */
const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
