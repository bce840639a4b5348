import { hostname } from 'node:os';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { whenInterrupted } from './interrupted.mjs';
import { report } from './report.mjs';
import { attackThroughApi, loadAttacks } from './through-api.mjs';

/** The longest that an operator can allow. */
const RUN_SECONDS = 300;

/**
 * Attacks an instance that is running, through its REST API only. As its rung is not known, attacks that are for namespaces are left out. An interruption
 * ends the attacks, and what they have created is deleted.
 *
 * @param {object} options
 * @param {string} options.url of the REST API, with or without the version
 * @param {string} options.keys API keys of hostile accounts, separated by commas
 * @param {string} [options.victimKey]
 */
export async function attackRunning({ url, keys, victimKey }) {
  const apiUrl = `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`;
  const hostileKeys = keys.split(',').filter(Boolean);
  if (hostileKeys.length === 0) throw new ExplainedError('SLUICE_API_KEY must contain an API key of the instance.');
  await checkKeys(apiUrl, [...hostileKeys, ...(victimKey ? [victimKey] : [])]);
  if (!victimKey) console.error('Without --victim-key, nobody looks whether other accounts notice the attacks.');
  const { attacksOn } = await loadAttacks();
  const port = Number(new URL(apiUrl).port || 80);
  const result = await attackThroughApi({
    ...{ apiUrl, hostileKeys, victimKey, runSeconds: RUN_SECONDS, stopped: whenInterrupted() },
    attacks: attacksOn('setpriv-lsm'),
    targets: {
      ...{ parentPid: 1, otherPid: process.pid, hostname: hostname(), projectFile: inRoot('package.json') },
      // of the instance: its API, and the stores of npm start
      ...{ port, storePort: 5433, publicStorePort: 9092, httpPort: port, greeterPort: port },
      ...{ unixSocket: '/var/run/docker.sock', abstractSocket: 'none' },
    },
  });
  return { url, ...report(result) };
}

/**
 * @param {string} apiUrl
 * @param {string[]} keys
 */
async function checkKeys(apiUrl, keys) {
  const accounts = await Promise.all(
    keys.map(async (key) => {
      const response = await fetch(`${apiUrl}/users/me`, { headers: { authorization: `Bearer ${key}` } }).catch((error) => {
        throw new ExplainedError(`No instance responds at ${apiUrl}: ${error.cause?.code ?? error.message}`);
      });
      if (response.status !== 200) throw new ExplainedError(`GET ${apiUrl}/users/me returned ${response.status}: is the key right?`);
      return /** @type {any} */ (await response.json()).data.id;
    }),
  );
  if (new Set(accounts).size < keys.length) throw new ExplainedError('Each key must belong to another account.');
}
