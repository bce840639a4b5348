import ts from 'typescript';

/** @typedef {{ line: number, text: string }} Prose a line of text for human readers; `line` counts from 1 */

/**
 * The prose of a file: the comments and messages of code, and the text of Markdown without its code.
 *
 * @param {string} file its name decides how it is read
 * @param {string} text
 * @returns {Prose[]}
 */
export function proseOf(file, text) {
  if (/\.(ts|[cm]?js)$/.test(file)) return codeProse(file, text);
  if (file.endsWith('.md')) return lines(withoutCode(text));
  return lines(text);
}

/** @param {string} text @param {number} [first] @returns {Prose[]} */
const lines = (text, first = 1) => text.split('\n').map((line, index) => ({ line: first + index, text: line }));

/** @param {string} markdown the same number of lines */
const withoutCode = (markdown) =>
  markdown.replace(/^ *```[^]*?^ *```/gm, (block) => block.replace(/[^\n]/g, '')).replace(/`[^`\n]*`/g, '``');

/** @param {string} file @param {string} text @returns {Prose[]} */
function codeProse(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  /** @type {Prose[]} */
  const found = [];
  /** @param {string} part @param {number} position */
  const add = (part, position) => found.push(...lines(part, source.getLineAndCharacterOfPosition(position).line + 1));
  /** @param {ts.Node} node */
  const visit = (node) => {
    const children = node
      .getChildren(source)
      .filter(({ kind }) => kind < ts.SyntaxKind.FirstJSDocNode || kind > ts.SyntaxKind.LastJSDocNode);
    if (children.length > 0) return children.forEach(visit);
    // between two tokens there are only comments and white space
    const start = node.getStart(source);
    if (start > node.pos) add(text.slice(node.pos, start), node.pos);
    // a text without a space is a name or a value
    if ((ts.isStringLiteral(node) || ts.isTemplateLiteralToken(node)) && node.text.includes(' ')) add(node.getText(source), start);
  };
  visit(source);
  return found;
}
