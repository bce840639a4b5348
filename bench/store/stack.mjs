import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { appEnvironment, startApp } from '../../scripts/lib/apps.mjs';
import { startBroker } from '../../scripts/lib/broker.mjs';
import { removeAtEnd } from '../../scripts/lib/keeper.mjs';
import { node24 } from '../../scripts/lib/node24.mjs';
import { inRoot } from '../../scripts/lib/paths.mjs';
import { freePort } from '../../scripts/lib/ports.mjs';
import { startPostgres } from '../../scripts/lib/postgres.mjs';
import { ensureBrokerJars } from '../../scripts/lib/setup.mjs';
import { supervise } from '../../scripts/lib/supervise.mjs';

/**
 * A broker, a database server and the event store, as durable as in production, in a temporary folder and on free ports. Whatever dies is
 * started again. Everything goes when the process ends, however it ends.
 *
 * @param {{ partitions: number, replicas?: number, log?: (line: string) => void }} options log: what the store says
 */
export async function startStoreStack({ partitions, replicas = 1, log = console.error }) {
  await ensureBrokerJars({ say: console.error });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
  // PostgreSQL may have to run as another user, who must get through to its folder.
  await chmod(folder, 0o711);
  removeAtEnd(folder);
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
  const env = { KAFKA_BROKERS: brokers, DATABASE_URL: databaseUrl, SLUICE_LOG_LEVEL: 'warn', SLUICE_PARTITIONS: String(partitions) };
  await promisify(execFile)(node24(), [inRoot('scripts/migrate.mjs')], { env: appEnvironment(env) });
  const stores = Array.from({ length: replicas }, (_, number) =>
    supervise({ name: `event-store ${number}`, launch: async () => startApp({ app: 'event-store', env, log: (_app, line) => log(line) }) }),
  );
  return {
    brokers,
    databaseUrl,
    broker,
    postgres,
    stores,
    stop: async () => {
      await Promise.all(stores.map((store) => store.stop()));
      await Promise.all([broker.stop(), postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const TICKS_PER_SECOND = 100;

/**
 * CPU seconds that processes have used so far; null where the system doesn't tell.
 * @param {number | string | undefined} process a process id, or the name that several have
 */
export function cpuSeconds(process) {
  try {
    const pids = typeof process === 'number' ? [String(process)] : readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    let ticks = 0;
    for (const pid of pids) {
      const stat = readStat(pid);
      if (stat && (typeof process === 'number' || stat.name === process)) ticks += stat.ticks;
    }
    return ticks / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

/** @param {string} pid */
function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { name: text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    // it has ended meanwhile
    return null;
  }
}
