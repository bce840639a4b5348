import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { appEnvironment } from '../../scripts/processes/apps.mjs';
import { startBroker } from '../../scripts/stores/broker.mjs';
import { removeAtEnd } from '../../scripts/processes/keeper.mjs';
import { node24 } from '../../scripts/setup/node24.mjs';
import { inRoot } from '../../scripts/shell/paths.mjs';
import { freePort } from '../../scripts/shell/ports.mjs';
import { startPostgres } from '../../scripts/stores/postgres.mjs';
import { ensureBrokerJars } from '../../scripts/setup/setup.mjs';
import { supervise } from '../../scripts/processes/supervise.mjs';

const execute = promisify(execFile);

/** A temporary folder that is removed when the process ends, for whatever reason. */
export async function ownFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-own-'));
  // PostgreSQL may run as another user, who must be able to reach its folder.
  await chmod(folder, 0o711);
  removeAtEnd(folder);
  return folder;
}

/**
 * Runs one of our programs; returns its output.
 *
 * @param {Record<string, string>} env
 * @param {string} file
 * @param {string[]} args
 */
export const runOurs = async (env, file, ...args) =>
  (await execute(node24(), [inRoot(file), ...args], { env: appEnvironment(env) })).stdout;

/**
 * A broker and a database server as durable as in production, in a temporary folder and on free ports. If one dies, it is restarted with the
 * same data. Everything is removed when the process ends, for whatever reason.
 */
export async function startOwnStores() {
  await ensureBrokerJars({ say: console.error });
  const folder = await ownFolder();
  const [brokerPort, controllerPort, postgresPort] = [await freePort(), await freePort(), await freePort()];
  let [brokers, databaseUrl] = ['', ''];
  const broker = supervise({
    name: 'broker',
    launch: async () => {
      const started = await startBroker({ dir: join(folder, 'broker'), port: brokerPort, controllerPort });
      brokers = started.brokers;
      return started;
    },
  });
  const postgres = supervise({
    name: 'postgres',
    launch: async () => {
      const started = await startPostgres({ dir: join(folder, 'postgres'), port: postgresPort });
      databaseUrl = started.url;
      return started;
    },
  });
  await Promise.all([broker.start(), postgres.start()]);
  return {
    folder,
    brokers,
    databaseUrl,
    broker,
    postgres,
    stop: async () => {
      await Promise.all([broker.stop(), postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
