import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Names of variables that the services read. */
const READ = /^(SLUICE|KAFKA|DATABASE|RUNNER|NODE)_/;

/**
 * A hash of the build and the variables, on which it depends whether a start succeeds. A start with the same hash as the last successful one omits the checks
 * whose result is known.
 *
 * @param {string | undefined} build the state of the sources from which the services have been built
 * @param {Record<string, string | undefined>} env
 */
export function startHash(build, env) {
  const variables = Object.entries(env)
    .filter(([name]) => READ.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([build, process.getuid?.(), variables]))
    .digest('hex');
}

/**
 * @param {import('./data-folder.mjs').DataFolder} folder
 * @returns {string | null} the hash of the last successful start in this folder
 */
export function lastStart({ lastStart: file }) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}
