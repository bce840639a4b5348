import ts from 'typescript';

/** @typedef {{ line: number, text: string }} Prose a line of text for human readers; `line` counts from 1 */
/** @typedef {{ line: number, name: string, described: boolean }} TestName `described`: the test is in a `describe`, which may name its subject */

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

/** Functions that declare a test, or a group of tests; also as methods, such as `needing('receiver').it`. */
const TEST = /^(it|test|delivering)$/;
const GROUP = /^describe$/;

/**
 * The names of the tests of a file with code.
 *
 * @param {string} file
 * @param {string} text
 * @returns {TestName[]}
 */
export function testNames(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  /** @type {TestName[]} */
  const found = [];
  /** @param {ts.Node} node @param {boolean} described */
  const visit = (node, described) => {
    const called = ts.isCallExpression(node) ? calledName(node.expression) : '';
    const [name] = ts.isCallExpression(node) ? node.arguments : [];
    if (TEST.test(called) && name && (ts.isStringLiteralLike(name) || ts.isTemplateExpression(name))) {
      const line = source.getLineAndCharacterOfPosition(name.getStart(source)).line + 1;
      found.push({ line, name: name.getText(source).slice(1, -1), described });
    }
    ts.forEachChild(node, (child) => visit(child, described || GROUP.test(called)));
  };
  visit(source, false);
  return found;
}

/** The function that a call expression begins with: `it` of `it(…)`, `it.each(…)(…)` and `needing(…).it(…)`. @param {ts.Expression} called @returns {string} */
function calledName(called) {
  if (ts.isIdentifier(called)) return called.text;
  if (ts.isCallExpression(called) || ts.isTaggedTemplateExpression(called))
    return calledName(ts.isCallExpression(called) ? called.expression : called.tag);
  if (!ts.isPropertyAccessExpression(called)) return '';
  return TEST.test(called.name.text) || GROUP.test(called.name.text) ? called.name.text : calledName(called.expression);
}

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
