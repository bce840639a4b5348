// node own-instance.mjs <bwrap|unshare|setpriv-lsm>: starts a whole instance whose runtime uses this rung, attacks it through its REST API, and prints one
// line of JSON. `npm run attack` runs it for each rung.
import { readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { allProcesses, withDescendants } from '../pid-files/process-tree.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { freePorts, startOwnSystem } from '../temporary/own-system.mjs';
import { report } from './report.mjs';
import { attackThroughApi, loadAttacks } from './through-api.mjs';
import { topicsOf } from './topics.mjs';

const ACCOUNTS = 10;
const RUN_SECONDS = 3;
const ENDS_WITHIN_MS = 5000;

const rung = /** @type {import('../../apps/runtime/src/sandbox/jail/jail.js').Rung} */ (process.argv[2]);
const SANDBOX = ['dist', 'apps', 'runtime', 'src', 'sandbox'];
/** @type {typeof import('../../apps/runtime/src/sandbox/attacks/bait.js')} */
const { setBait } = await import(inRoot(...SANDBOX, 'attacks', 'bait.js'));
/** @type {typeof import('../../apps/runtime/src/sandbox/egress/mock-internet-for-tests.js')} */
const { startMockInternet } = await import(inRoot(...SANDBOX, 'egress', 'mock-internet-for-tests.js'));

process.env.SECRET = 'the secret of the services';
const ports = await freePorts();
const [internet, bait] = [await startMockInternet(), await setBait()];
const ownPorts = [ports.broker, ports.controller, ports.postgres, ports.http, ports.endpoints, ...ports.health.values()];
const system = await startOwnSystem(
  {
    RUNNER_JAIL: rung,
    SLUICE_MAX_RUN_SECONDS: String(RUN_SECONDS),
    SLUICE_MAX_RUN_CPU_SECONDS: '1',
    // an operator that allows every host; the bait is a server of the installation, too
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8:*,[::1]:*,localhost:*',
    SLUICE_PROTECTED_HOSTS: [...ownPorts, bait.port].map((port) => `127.0.0.1:${port}`).join(','),
    SLUICE_PACKAGES: 'listed',
  },
  ports,
);
try {
  const { attacksOn, forbiddenOn, instanceAttacks } = await loadAttacks();
  const hostileKeys = await Promise.all(Array.from({ length: ACCOUNTS }, (_, n) => system.newAccount(`hostile-${n}@example.com`)));
  const pids = system.pids();
  const topics = await topicsOf(system.brokers);
  const result = await attackThroughApi({
    ...{ apiUrl: system.apiUrl, hostileKeys, victimKey: system.apiKey, hasWebhook: true, runSeconds: RUN_SECONDS, internet: '127.0.0.1' },
    attacks: [...attacksOn(rung), ...instanceAttacks],
    targets: {
      ...{ parentPid: pids.runtime ?? 0, otherPid: process.pid, hostname: hostname(), projectFile: inRoot('package.json') },
      ...{ port: bait.port, unixSocket: bait.unixSocket, abstractSocket: bait.abstractSocket },
      ...{ storePort: ports.postgres, publicStorePort: ports.broker, httpPort: internet.http, greeterPort: internet.greeter },
      instance: {
        servers: serversOf(ownPorts),
        pids: Object.values(pids).filter((pid) => pid !== undefined),
        files: filesOf(system.folder),
      },
    },
  });
  result.others.push(...forbiddenOn(rung, bait.reached(internet)).map((what) => `an attack reached the bait: ${what}`));
  result.others.push(...(await changes(pids, topics)));
  const started = withDescendants([pids.runtime]);
  await system.stop();
  result.others.push(...(await leftovers(started)));
  console.log(JSON.stringify(report(result)));
} finally {
  await system.stop();
  internet.close();
  bait.remove();
}
process.exit();

/** @param {number[]} onLoopback */
function serversOf(onLoopback) {
  const hosts = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '127.0.0.9'];
  return hosts.flatMap((host) => onLoopback.map((port) => `${host}:${port}`));
}

/** The sources, and the folder with the data and the credentials. @param {string} folder */
function filesOf(folder) {
  const within = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /password|properties|meta|key/.test(name));
  return [ROOT, folder, '/proc/1/root', ...within.slice(0, 40).map((name) => join(folder, name))];
}

/**
 * The changes of the instance since these were read.
 * @param {Record<string, number | undefined>} pids
 * @param {string} topics
 */
async function changes(pids, topics) {
  const unhealthy = await Promise.all(
    [...ports.health].map(async ([app, port]) => {
      const { status } = await fetch(`http://127.0.0.1:${port}/health/ready`);
      return status === 200 ? [] : [`${app} is not ready: ${status}`];
    }),
  );
  const now = system.pids();
  return [
    ...unhealthy.flat(),
    ...Object.entries(pids).flatMap(([name, pid]) => (now[name] === pid ? [] : [`${name} has died or was restarted`])),
    ...((await topicsOf(system.brokers)) === topics ? [] : ['the topics of the broker have changed']),
  ];
}

/**
 * The processes that are still running after the runtime has stopped.
 * @param {Set<number | undefined>} pids
 */
async function leftovers(pids) {
  const running = () => allProcesses().filter(({ pid, state }) => pids.has(pid) && state !== 'Z');
  for (const until = Date.now() + ENDS_WITHIN_MS; running().length > 0 && Date.now() < until;) await sleep(100);
  return running().map(({ pid, name }) => `a process that is left: ${pid} ${name}`);
}
