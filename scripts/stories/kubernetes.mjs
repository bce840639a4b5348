import { ExplainedError } from '../shell/explained-error.mjs';
import { run } from '../shell/run.mjs';

/**
 * The tests' namespace in a cluster.
 *
 * @typedef {object} KubernetesSettings
 * @property {string} namespace
 * @property {string} [context] of kubectl; default: the current one
 */

/**
 * Runs `kubectl` in the namespace; an error contains its output.
 *
 * @param {KubernetesSettings} settings
 * @param {string[]} args
 * @returns {Promise<string>} its standard output
 */
export async function kubectl(settings, args) {
  const { code, stdout, output } = await run('kubectl', kubectlArguments(settings, args));
  if (code !== 0) throw new ExplainedError(`kubectl ${args.join(' ')} failed:\n${output.trim()}`);
  return stdout;
}

/**
 * @param {KubernetesSettings} settings
 * @param {string[]} args
 */
export const kubectlArguments = ({ namespace, context }, args) => [
  ...(context ? ['--context', context] : []),
  '--namespace',
  namespace,
  ...args,
];
