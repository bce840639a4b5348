import { relative } from 'node:path';
import { ROOT } from '../shell/paths.mjs';
import { healthPorts, localUrl } from './settings.mjs';

/**
 * The information that a user needs once Sluice is running.
 * @param {object} options
 * @param {import('./settings.mjs').Settings} options.settings
 * @param {string | null} options.apiKey
 * @param {string} options.keyFile
 * @param {boolean} options.showsKey false in a log, which would get a key that is kept at each start
 */
export function banner({ settings, apiKey, keyFile, showsKey }) {
  const server = localUrl(settings.httpHost, settings.httpPort);
  /** @param {string} path */
  const shown = (path) => (path.startsWith(ROOT) ? relative(ROOT, path) : path);
  // the command line finds the instance by its folder
  const variable = shown(settings.dataDir) === '.sluice' ? '' : `    export SLUICE_DATA_DIR=${quoted(shown(settings.dataDir))}\n`;
  const health = [...healthPorts(settings)].map(([app, port]) => `${port} (${app})`).join(', ');
  const key = `${showsKey ? `${apiKey}   ` : ''}(stored in ${shown(keyFile)})`;
  return `
  Sluice is running.

    REST API             ${server}/v1
    its documentation    ${server}/docs
    sources' endpoints   ${localUrl(settings.endpointsHost, settings.endpointsPort)}
    Kafka                ${settings.kafkaBrokers ?? `localhost:${settings.kafkaPort}   (the public topics, without a login)`}
${health && `    health, metrics      ${localUrl(settings.healthHost, settings.healthPort)}/metrics; ports ${health}\n`}    API key              ${apiKey ? key : 'unchanged; to create another: npx sluice admin key create --account u_…'}

  Next, in another terminal in this folder:

${variable}    npx sluice deploy http-request --name orders -p bodyOnly=true
                                                        a source that emits the body of each request to its endpoint
    export PORT=4000                                    any free port
    node examples/support/receiver.mjs $PORT &          prints each event that it receives
    npx sluice subscribe orders http://localhost:$PORT/ -n inbox
                                                        a webhook that delivers the events of the source to it
    npx sluice trigger orders --data '{"order": 17}'    sends it a request
    npx sluice events orders                            shows the event, which is stored

  README.md explains these steps, and docs/tutorials/write-a-component.md continues with your first component.
  What components log, and the errors that they throw, appear here with the name of the source.

  Ctrl-C stops it. All data is in ${shown(settings.dataDir)}/.
`;
}

/** As a shell reads it. @param {string} path */
const quoted = (path) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);
