// npm run bench:idle — CPU and memory of a system that `npm start` runs and that has nothing to do, by process, without npm's own. Prints one JSON line.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dataFolder } from '../scripts/launch/data-folder.mjs';
import { APPS } from '../scripts/processes/apps.mjs';
import { unwatch, watch } from '../scripts/shell/keeper.mjs';
import { readPidFile } from '../scripts/pid-files/pid-file.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { brokerPidFile } from '../scripts/stores/broker.mjs';
import { postgresPidFile } from '../scripts/stores/postgres.mjs';
import { ownFolder } from '../scripts/temporary/own-stores.mjs';
import { freePorts } from '../scripts/temporary/own-system.mjs';
import { cpuByProcess } from './lib/cpu.mjs';
import { pssMb } from './lib/memory.mjs';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);
/** Until then, the start's own work has ended, and with it the processes that were ready for more of it. */
const SETTLE_SECONDS = Number(process.env.BENCH_SETTLE_SECONDS ?? 75);

/** Unset, also if `.env` sets them: the benchmark has separate stores. */
const OTHER_STORES = Object.fromEntries(
  ['DATABASE_URL', 'DATABASE_URL_FILE', 'KAFKA_BROKERS', 'SLUICE_API_KEY', 'SLUICE_HEALTH_PORT'].map((name) => [name, '']),
);

const folder = dataFolder(join(await ownFolder(), 'data'));
const launcher = spawn(node24(), [inRoot('scripts', 'start.mjs')], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: { ...process.env, ...OTHER_STORES, ...(await ports()), SLUICE_DATA_DIR: folder.dir },
});
const ended = once(launcher, 'exit');
// this process may be killed
if (launcher.pid) watch(launcher.pid, 'SIGTERM');
try {
  while (!existsSync(folder.running)) {
    if (launcher.exitCode !== null || launcher.signalCode !== null) throw new Error('npm start has failed, see above');
    await sleep(100);
  }
  await sleep(SETTLE_SECONDS * 1000);
  const pids = { all: launcher.pid, ...parts() };
  const cpu = cpuByProcess(pids);
  const started = performance.now();
  await sleep(SECONDS * 1000);
  const elapsed = performance.now() - started;
  const used = cpu();
  if (Object.entries(parts()).some(([name, pid]) => pid !== pids[name])) throw new Error('a process was restarted during the measurement');
  const figures = Object.entries(pids).map(([name, pid]) => ({
    name,
    cpu_percent: ((used[name] ?? 0) / elapsed) * 100,
    pss_mb: pssMb([pid]),
  }));
  const [all, ...others] = figures;
  /** The launcher's figure is the rest: those of `all` include its descendants. @param {'cpu_percent' | 'pss_mb'} figure */
  const ofLauncher = (figure) => others.reduce((rest, each) => rest - each[figure], all?.[figure] ?? 0);
  const processes = [...others, { name: 'launcher', cpu_percent: ofLauncher('cpu_percent'), pss_mb: ofLauncher('pss_mb') }];
  console.log(
    JSON.stringify({
      ...{ bench: 'idle', seconds: SECONDS, cpu_percent_of_a_core: round(all?.cpu_percent), pss_mb: round(all?.pss_mb) },
      processes: Object.fromEntries(
        processes.map(({ name, cpu_percent, pss_mb }) => [name, { cpu_percent: round(cpu_percent), pss_mb: round(pss_mb) }]),
      ),
    }),
  );
} finally {
  launcher.kill('SIGINT');
  await ended;
  if (launcher.pid) unwatch(launcher.pid);
}

/** The processes that have separate figures. @returns {Record<string, number>} */
function parts() {
  const files = {
    broker: brokerPidFile(folder.broker),
    postgres: postgresPidFile(folder.postgres),
    ...Object.fromEntries(APPS.map((app) => [app, folder.appPidFile(app)])),
  };
  return Object.fromEntries(
    Object.entries(files).map(([name, file]) => {
      const pid = readPidFile(file)?.pid;
      if (pid === undefined) throw new Error(`${name} is not running`);
      return [name, pid];
    }),
  );
}

/** Variables with free ports. */
async function ports() {
  const { http, endpoints, broker, postgres } = await freePorts();
  return {
    SLUICE_HTTP_PORT: String(http),
    SLUICE_ENDPOINTS_PORT: String(endpoints),
    SLUICE_KAFKA_PORT: String(broker),
    SLUICE_POSTGRES_PORT: String(postgres),
  };
}

/** @param {number | undefined} value */
function round(value = 0) {
  return Math.round(value * 10) / 10;
}
