import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { appEnvironment } from '../processes/apps.mjs';
import { writeSecret } from '../shell/secret-file.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { commandOf } from '../setup/bundles.mjs';
import { node24 } from '../setup/node24.mjs';
import { ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { apiUrl, isApiKey } from './settings.mjs';

/**
 * Creates the first account if there is none yet, and stores its API key.
 *
 * @param {object} options
 * @param {Record<string, string | undefined>} options.env
 * @param {string} options.keyFile
 * @param {string} [options.apiKey] the key to use
 * @returns {Promise<string | null>} its key; null if the account already exists and no key is configured
 */
export async function ensureFirstAccount({ env, keyFile, apiKey }) {
  const cli = commandOf('gateway-command');
  const { code, stdout, output } = await run(node24(), [cli, 'account', 'bootstrap', '--json'], {
    cwd: ROOT,
    env: { ...appEnvironment(env), SLUICE_API_KEY: apiKey },
  });
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe first account could not be created, see above.`);
  const { api_key: key } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  if (key) writeSecret(keyFile, key);
  return key;
}

/**
 * The key that an earlier start has stored. A damaged file has none: a request could not carry its contents.
 * @param {string} keyFile
 * @returns {string | null}
 */
export function readKeptKey(keyFile) {
  try {
    const key = readFileSync(keyFile, 'utf8').trim();
    return isApiKey(key) ? key : null;
  } catch {
    return null;
  }
}

/**
 * Whether the REST API accepts a key: a key that has been revoked must not be shown.
 * @param {import('./settings.mjs').Settings} settings
 * @param {string} key
 */
export async function keyWorks(settings, key) {
  const url = `${apiUrl(settings)}/v1/users/me`;
  try {
    return (await statusOf(url, key)) !== 401;
  } catch (error) {
    const { message, cause } = /** @type {Error & { cause?: Error }} */ (error);
    throw new ExplainedError(`The REST API does not respond at ${url}: ${cause?.message ?? message}.`);
  }
}

/**
 * Uses `node:http`: the first `fetch` of a process takes 10 MB of memory, and this process runs as long as the system.
 * @param {string} url
 * @param {string} key
 */
async function statusOf(url, key) {
  const request = get(url, { headers: { authorization: `Bearer ${key}` }, agent: false, signal: AbortSignal.timeout(10_000) });
  const [response] = await once(request, 'response');
  // the connection may end before the body
  request.on('error', () => {});
  response.on('error', () => {}).resume();
  return response.statusCode;
}
