import { existsSync, readFileSync } from 'node:fs';
import { inRoot } from '../shell/paths.mjs';

const COMPARISON = inRoot('dist', 'libs', 'contracts', 'src', 'unknown-field.js');
const NAME = /\b(SLUICE|RUNNER)_[A-Z0-9_]+/g;

/** Whether the services have been built, so that `misspeltVariables` works. */
export const canCompareNames = () => existsSync(COMPARISON);

/**
 * Variables that nothing reads because their names are almost right. Other unknown names may belong to scripts of the operator.
 * @param {Record<string, string | undefined>} env
 * @returns {Promise<string[]>} a line for each
 */
export async function misspeltVariables(env) {
  const { meantBy } = await import(COMPARISON);
  const known = new Set(readFileSync(inRoot('.env.example'), 'utf8').match(NAME));
  return Object.keys(env).flatMap((name) => {
    const [, prefix] = /^((?:SLUICE|RUNNER)_)/.exec(name) ?? [];
    if (prefix === undefined || known.has(name)) return [];
    // the same beginning would make all names similar
    const others = [...known].filter((each) => each.startsWith(prefix)).map((each) => each.slice(prefix.length));
    const meant = meantBy(name.slice(prefix.length), others);
    return meant === undefined ? [] : [`${name} is not a variable of Sluice: did you mean ${prefix}${meant}?`];
  });
}
