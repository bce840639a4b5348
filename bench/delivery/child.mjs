import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { appEnvironment } from '../../scripts/processes/apps.mjs';
import { node24 } from '../../scripts/setup/node24.mjs';

/**
 * A process of the benchmark, and its first message. It exits when its channel to this process closes.
 *
 * @param {string} file in this folder
 * @param {string[]} args
 */
export async function startChild(file, ...args) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execPath: node24(), env: appEnvironment({}) });
  const [first] = await once(child, 'message');
  return {
    pid: child.pid ?? 0,
    first,
    /** @param {any} message */
    ask: async (message) => {
      const response = once(child, 'message');
      child.send(message);
      return (await response)[0];
    },
    stop: async () => {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}
