import { readFileSync } from 'node:fs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';

/**
 * Adds the variables of `.env` to the environment, unless they are already set.
 * @throws {ExplainedError} if it exists, but cannot be read: with the defaults, another, empty Sluice would start
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
  for (const [name, value] of Object.entries(parseDotEnv(text))) process.env[name] ??= value;
}

/**
 * Parses `NAME=value` lines; the value may be quoted; `#` begins a comment.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function parseDotEnv(text) {
  /** @type {Record<string, string>} */
  const variables = {};
  for (const [, name, single, double, bare] of text.matchAll(
    /^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*(?:'([^']*)'|"([^"]*)"|([^\r\n]*))/gm,
  )) {
    if (name) variables[name] = single ?? double?.replaceAll('\\n', '\n') ?? (bare ?? '').replace(/(^|\s+)#.*$/, '').trim();
  }
  return variables;
}
