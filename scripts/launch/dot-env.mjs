import { readFileSync } from 'node:fs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';

/**
 * Adds the variables of `.env` to the environment, unless they are already set.
 * @throws {ExplainedError} if it exists, but cannot be read or has a line that is not understood: with the defaults, another, empty Sluice would start
 */
export function loadDotEnv(file = inRoot('.env')) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === 'ENOENT') return;
    throw new ExplainedError(`${file} cannot be read: ${message}.`);
  }
  const { variables, wrongLine } = parseDotEnv(text);
  if (wrongLine !== undefined)
    throw new ExplainedError(`Line ${wrongLine} of ${file} must be NAME=value; quotes enclose the whole value, and cannot be part of it.`);
  for (const [name, value] of Object.entries(variables)) process.env[name] ??= value;
}

// The value may be quoted, and then has several lines; `#` begins a comment. Docker Compose accepts more.
const NAME = String.raw`(?:export[ \t]+)?([\w.-]+)[ \t]*[=:][ \t]*`;
const QUOTED = String.raw`(?:'([^']*)'|"([^"]*)")(?:[ \t]+#[^\n]*)?`;
const BARE = String.raw`(?![ \t]*['"])([^\n]*)`;
const LINE = new RegExp(String.raw`[ \t]*(?:#[^\n]*|${NAME}(?:${QUOTED}|${BARE}))?[ \t\r]*(?:\n|$)`, 'y');

/**
 * @param {string} text
 * @returns {{ variables: Record<string, string>, wrongLine?: number }} `wrongLine`: the first one that is neither a variable nor a comment; 1 is the first line
 */
export function parseDotEnv(text) {
  /** @type {Record<string, string>} */
  const variables = {};
  // editors on Windows begin a file with a byte order mark
  for (let at = text.startsWith('\ufeff') ? 1 : 0; at < text.length; at = LINE.lastIndex) {
    LINE.lastIndex = at;
    const line = LINE.exec(text);
    if (!line) return { variables, wrongLine: text.slice(0, at).split('\n').length };
    const [, name, single, double, bare] = line;
    if (name) variables[name] = single ?? double?.replaceAll('\\n', '\n') ?? (bare ?? '').replace(/(^|\s+)#.*$/, '').trim();
  }
  return { variables };
}
