import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../shell/ports.mjs';
import { run } from '../shell/run.mjs';
import { compose, docker } from '../stories/compose.mjs';
import { removeProject, startProject, whyNoContainers } from '../stories/compose-project.mjs';
import { interruptible } from '../stories/interruptible.mjs';
import { whenInterrupted } from './interrupted.mjs';
import { report, total } from './report.mjs';
import { attackThroughApi, loadAttacks } from './through-api.mjs';
import { topicsOf } from './topics.mjs';

/** @typedef {import('../../apps/runtime/src/sandbox/jail/jail.js').Rung} Rung */

const ACCOUNTS = 10;
const RUN_SECONDS = 3;
/**
 * Without the system calls that the strongest jail needs, and with them. `jail`: the rung that works then.
 * @type {{ profile: string, options: string[], jail: Rung }[]}
 */
const PROFILES = [
  { profile: 'default', options: [], jail: 'setpriv-lsm' },
  { profile: 'docker/seccomp-runtime.json', options: ['--security-opt', 'seccomp=docker/seccomp-runtime.json'], jail: 'bwrap' },
];

/**
 * Attacks the sandbox in a container like the runtime's, and the instance of docker-compose.yml, once for each seccomp profile.
 * @returns {AsyncGenerator<Partial<import('./report.mjs').Counts> & { rung: string, container: true, skipped?: string }>}
 */
export async function* attackContainers() {
  const missing = await whyNoContainers();
  for (const { profile, options, jail } of PROFILES) {
    if (missing) yield { rung: jail, container: true, skipped: missing };
    else yield await attackContainer(profile, options, jail);
  }
}

/**
 * @param {string} profile
 * @param {string[]} options of `docker run`
 * @param {Rung} jail
 */
async function attackContainer(profile, options, jail) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-attack-'));
  const settings = { project: `sluice-attack-${process.pid}`, folder, httpPorts: [await freePort()], endpointsPorts: [await freePort()] };
  return interruptible(
    async () => {
      const instance = await attackInstance(settings, jail);
      const { rung, user, ...sandbox } = await attackSandbox(`sluice:${settings.project}`, options);
      return { rung, user, container: /** @type {const} */ (true), profile, ...total({ sandbox, instance }) };
    },
    () => removeProject(settings),
  );
}

/**
 * @param {string} image
 * @param {string[]} options of `docker run`
 */
async function attackSandbox(image, options) {
  const built = await docker(['build', '--quiet', '--file', 'docker/attacks.Dockerfile', '--build-arg', `IMAGE=${image}`, '.']);
  const hardened = ['--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=none', ...options];
  const { stdout, output } = await run('docker', ['run', '--rm', ...hardened, built.trim()]);
  if (output !== stdout) console.error(output.replace(stdout, ''));
  await docker(['image', 'rm', '--force', built.trim()]);
  return JSON.parse(stdout);
}

/**
 * @param {import('../stories/compose.mjs').ComposeSettings} settings
 * @param {Rung} jail
 */
async function attackInstance(settings, jail) {
  const [http, endpoints, kafka] = [settings.httpPorts[0] ?? 0, settings.endpointsPorts[0] ?? 0, await freePort()];
  await startProject(settings, {
    ...{ SLUICE_HTTP_PORT: http, SLUICE_ENDPOINTS_PORT: endpoints, SLUICE_KAFKA_PORT: kafka },
    ...{ RUNNER_JAIL: jail, SLUICE_MAX_RUN_SECONDS: RUN_SECONDS, SLUICE_MAX_RUN_CPU_SECONDS: 1 },
    // an operator that allows every host
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8:*,10.0.0.0/8:*,172.16.0.0/12:*,192.168.0.0/16:*',
  });
  const newAccount = async (/** @type {string} */ name) => {
    const create = ['exec', '-T', 'gateway', 'sluice', 'account', 'create', '--email', `${name}@example.com`, '--json'];
    return JSON.parse(await compose(settings, create)).api_key;
  };
  const keys = await Promise.all(Array.from({ length: ACCOUNTS + 1 }, (_, n) => newAccount(`account-${n}`)));
  const before = await stateOf(settings, kafka);
  const { attacksOn, instanceAttacks } = await loadAttacks();
  const result = await attackThroughApi({
    ...{ apiUrl: `http://localhost:${http}/v1`, hostileKeys: keys.slice(1), victimKey: keys[0], runSeconds: RUN_SECONDS },
    stopped: whenInterrupted(),
    attacks: [...attacksOn(jail), ...instanceAttacks],
    targets: {
      // the runtime and its init, as the container numbers them
      ...{ parentPid: 7, otherPid: 1, hostname: (await compose(settings, ['exec', '-T', 'runtime', 'hostname'])).trim() },
      ...{ projectFile: '/app/package.json', unixSocket: '/var/run/docker.sock', abstractSocket: 'none' },
      ...{ port: 3001, storePort: 19_092, publicStorePort: 5432, httpPort: 3001, greeterPort: 3001 },
      instance: {
        servers: await serversOf(settings),
        pids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        files: ['/secrets', '/secrets/postgres-password', '/secrets/secrets-key', '/first-account', '/data', '/app', '/proc/1/environ'],
      },
    },
  });
  const after = await stateOf(settings, kafka);
  if (after !== before) result.others.push(`the containers or topics have changed, from\n${before}\nto\n${after}`);
  return report(result);
}

/** @type {Record<string, number[]>} */
const PORTS = {
  kafka: [19_092, 9092],
  postgres: [5432],
  gateway: [3000, 8080],
  catalog: [8080],
  routing: [8080],
  'event-store': [8080],
  runtime: [3001, 8080],
};

/**
 * The ports of the containers under the names of their services, and on the address in each of their networks: a name leads to one of them only.
 * @param {import('../stories/compose.mjs').ComposeSettings} settings
 */
async function serversOf(settings) {
  const ids = (await compose(settings, ['ps', '--quiet'])).trim().split('\n');
  const format = '{{index .Config.Labels "com.docker.compose.service"}}{{range .NetworkSettings.Networks}} {{.IPAddress}}{{end}}';
  const containers = (await docker(['inspect', '--format', format, ...ids])).trim().split('\n');
  return containers.flatMap((line) => {
    const [service = '', ...addresses] = line.split(' ');
    return [service, ...addresses].flatMap((host) => (PORTS[service] ?? []).map((port) => `${host}:${port}`));
  });
}

/**
 * The containers with their process ids and health, and the topics of the broker.
 * @param {import('../stories/compose.mjs').ComposeSettings} settings
 * @param {number} kafka the broker's port
 */
async function stateOf(settings, kafka) {
  const ids = (await compose(settings, ['ps', '--all', '--quiet'])).trim().split('\n');
  const format = '{{.Name}} {{.State.Status}} {{.State.Pid}} {{.RestartCount}} {{with .State.Health}}{{.Status}}{{end}}';
  return `${await docker(['inspect', '--format', format, ...ids])}${await topicsOf(`localhost:${kafka}`)}`;
}
