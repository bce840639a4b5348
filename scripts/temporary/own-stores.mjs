import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { appEnvironment } from '../processes/apps.mjs';
import { startBroker } from '../stores/broker.mjs';
import { removeAtEnd } from '../shell/keeper.mjs';
import { node24 } from '../setup/node24.mjs';
import { inRoot } from '../shell/paths.mjs';
import { freePort } from '../shell/ports.mjs';
import { startPostgres } from '../stores/postgres.mjs';
import { ensureKafka } from '../setup/setup.mjs';
import { Supervisor } from '../processes/supervisor.mjs';

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
 * Mounts a separate file system of this size on a folder, until the end. Returns false if that is not permitted.
 *
 * @param {string} folder
 * @param {number} megabytes
 */
async function mountDisk(folder, megabytes) {
  await mkdir(folder, { recursive: true });
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=711`, 'tmpfs', folder]).status !== 0) return false;
  process.once('exit', () => spawnSync('umount', ['--lazy', folder]));
  return true;
}

/**
 * A broker and a database server as durable as in production, in a temporary folder and on free ports. If one dies, it is restarted with the
 * same data. Everything is removed when the process ends, for whatever reason.
 *
 * @param {{ disks?: { broker: number, postgres: number } }} [options] disks: the sizes of separate disks for both, in MB
 */
export async function startOwnStores({ disks } = {}) {
  await ensureKafka({ say: console.error });
  const folder = await ownFolder();
  const folders = { broker: join(folder, 'broker'), postgres: join(folder, 'postgres') };
  const hasDisks =
    disks !== undefined && (await mountDisk(folders.broker, disks.broker)) && (await mountDisk(folders.postgres, disks.postgres));
  const [brokerPort, controllerPort, postgresPort] = [await freePort(), await freePort(), await freePort()];
  let [brokers, databaseUrl] = ['', ''];
  const broker = new Supervisor({
    name: 'broker',
    launch: async () => {
      const started = await startBroker({ dir: folders.broker, port: brokerPort, controllerPort });
      brokers = started.brokers;
      return started;
    },
  });
  const postgres = new Supervisor({
    name: 'postgres',
    launch: async () => {
      const started = await startPostgres({ dir: folders.postgres, port: postgresPort });
      databaseUrl = started.url;
      return started;
    },
  });
  await Promise.all([broker.start(), postgres.start()]);
  return {
    folder,
    folders,
    /** Whether each store has a separate disk. */
    hasDisks,
    brokers,
    databaseUrl,
    broker,
    postgres,
    stop: async () => {
      await Promise.all([broker.stop(), postgres.stop()]);
      if (hasDisks) spawnSync('umount', ['--lazy', ...Object.values(folders)]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
