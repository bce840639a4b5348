import { relative } from 'node:path';
import { ROOT } from './paths.mjs';

/**
 * What a person needs to know once Sluice runs.
 * @param {object} options
 * @param {import('./settings.mjs').Settings} options.settings
 * @param {string | null} options.apiKey
 * @param {string} options.keyFile
 */
export function banner({ settings, apiKey, keyFile }) {
  const rest = `http://localhost:${settings.httpPort}/v1`;
  const newKey = 'npm run --silent sluice -- key create';
  /** @param {string} path */
  const shown = (path) => (path.startsWith(ROOT) ? relative(ROOT, path) : path);
  return `
  Sluice is running.

    REST API             ${rest}
    sources' endpoints   http://localhost:${settings.endpointsPort}
    Kafka                ${settings.kafkaBrokers ?? `localhost:${settings.kafkaPort}   (the public topics, without a login)`}
    API key              ${apiKey ? `${apiKey}   (kept in ${shown(keyFile)})` : `the one that you have; for another: ${newKey}`}

  A first call:

    curl -s ${rest}/users/me -H "Authorization: Bearer ${apiKey ? shellSafe(apiKey) : '<your API key>'}"

  Ctrl-C stops it. Everything is kept in ${shown(settings.dataDir)}/.
`;
}

/**
 * A key of the user's choice may hold what a shell would read as its own between double quotes.
 * @param {string} key
 */
const shellSafe = (key) => key.replace(/[\\"$`!]/g, (sign) => (sign === '!' ? `"'!'"` : `\\${sign}`));
