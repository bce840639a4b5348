import { readFileSync } from 'node:fs';
import { appEnvironment } from './apps.mjs';
import { writeSecret } from './data-folder.mjs';
import { ExplainedError } from './explained-error.mjs';
import { node24 } from './node24.mjs';
import { inRoot, ROOT } from './paths.mjs';
import { run } from './run.mjs';

/**
 * Makes the first account if there is none yet, and finds its API key: the one that was asked for, the one just made, or the one that
 * an earlier start has kept.
 *
 * @param {object} options
 * @param {Record<string, string | undefined>} options.env
 * @param {string} options.keyFile
 * @param {string} [options.apiKey] that it shall have
 * @returns {Promise<string | null>} null when the key is known to its owner only
 */
export async function ensureFirstAccount({ env, keyFile, apiKey }) {
  const cli = inRoot('dist', 'apps', 'gateway', 'src', 'cli.js');
  const { code, stdout, output } = await run(node24(), [cli, 'account', 'bootstrap', '--json'], {
    cwd: ROOT,
    env: { ...appEnvironment(env), SLUICE_API_KEY: apiKey },
  });
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe first account could not be made, see above.`);
  const { api_key: key } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  if (key) {
    writeSecret(keyFile, key);
    return key;
  }
  try {
    return readFileSync(keyFile, 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/**
 * Whether an API key is (still) good: a key that was revoked since must not be shown.
 * @param {number} httpPort
 * @param {string} key
 */
export async function keyWorks(httpPort, key) {
  const response = await fetch(`http://127.0.0.1:${httpPort}/v1/users/me`, { headers: { authorization: `Bearer ${key}` } });
  return response.status !== 401;
}
