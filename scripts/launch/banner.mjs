import { relative } from 'node:path';
import { ROOT } from '../shell/paths.mjs';

/**
 * The information that a user needs once Sluice is running.
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
    API key              ${apiKey ? `${apiKey}   (stored in ${shown(keyFile)})` : `unchanged; to create another: ${newKey}`}

  Try it:

    curl -s ${rest}/users/me -H "Authorization: Bearer ${apiKey ? shellSafe(apiKey) : '<your API key>'}"

  Ctrl-C stops it. All data is in ${shown(settings.dataDir)}/.
`;
}

/**
 * A custom key may contain characters that a shell would interpret within double quotes.
 * @param {string} key
 */
const shellSafe = (key) => key.replace(/[\\"$`!]/g, (sign) => (sign === '!' ? `"'!'"` : `\\${sign}`));
