import { join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

/**
 * A Compose project for the tests, beside the other projects of the engine.
 *
 * @typedef {object} ComposeSettings
 * @property {string} project
 * @property {string} folder contains `.env` (variables of docker-compose.yml) and `override.json` (additional environment variables of services)
 * @property {number[]} httpPorts on the host, one per replica of the gateway
 * @property {number[]} endpointsPorts on the host, one per replica of the runtime
 */

/** @param {ComposeSettings} settings */
export const overrideFile = ({ folder }) => join(folder, 'override.json');

/**
 * Runs `docker compose` for the project.
 *
 * @param {ComposeSettings} settings
 * @param {string[]} args
 * @param {Record<string, string>} [variables] of docker-compose.yml, for this call
 * @returns {Promise<string>} its standard output
 */
export function compose(settings, args, variables = {}) {
  return docker(composeArguments(settings, args), variables);
}

/**
 * @param {ComposeSettings} settings
 * @param {string[]} args
 */
export function composeArguments(settings, args) {
  const files = ['--file', inRoot('docker-compose.yml'), '--file', overrideFile(settings)];
  const environment = ['--env-file', join(settings.folder, '.env'), '--project-directory', ROOT];
  return ['compose', '--project-name', settings.project, ...files, ...environment, '--progress', 'plain', ...args];
}

/**
 * Runs `docker`; an error contains its output.
 *
 * @param {string[]} args
 * @param {Record<string, string>} [variables]
 * @returns {Promise<string>} its standard output
 */
export async function docker(args, variables = {}) {
  const { code, stdout, output } = await run('docker', args, { env: { ...dockerEnvironment(), ...variables } });
  if (code !== 0) throw new ExplainedError(`docker ${args.join(' ')} failed:\n${output.trim()}`);
  return stdout;
}

/** The environment for Docker, without variables meant for an instance: Compose would substitute them in docker-compose.yml. */
export function dockerEnvironment() {
  const foreign = /^(SLUICE|KAFKA|POSTGRES|DATABASE|RUNNER|COMPOSE)_/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}
