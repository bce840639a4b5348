// npm run test:compose [-- options] [-- arguments for jest]: runs the stories of test/ against the containers of docker-compose.yml.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './shell/command.mjs';
import { compose, docker, overrideFile } from './stories/compose.mjs';
import { explain, ExplainedError } from './shell/explained-error.mjs';
import { interruptible } from './stories/interruptible.mjs';
import { inRoot } from './shell/paths.mjs';
import { freePort, isOwnAddress } from './shell/ports.mjs';
import { runStories } from './stories/run-jest.mjs';
import { run } from './shell/run.mjs';
import { ensureDependencies } from './setup/setup.mjs';
import { timed, times } from './shell/timed.mjs';

const PROJECT = 'sluice-test';
const DOCKER_DESKTOP = 'host.docker.internal';

const USAGE = `Usage: npm run test:compose -- [options] [-- arguments for jest]

Builds the image, starts docker-compose.yml as a separate project, runs the stories of test/ against it, and removes the project.

  --project NAME   of Compose (default: sluice-test-PID, and with --keep sluice-kept-PID)
  --keep           leave the containers running, and print how to remove them
  --if-possible    succeed without testing if there is no container engine, or if an image is missing and cannot be pulled

npm run test:compose -- test/page-walk runs one story.`;

await runScript(
  {
    usage: USAGE,
    options: {
      project: { type: 'string' },
      keep: { type: 'boolean', default: false },
      'if-possible': { type: 'boolean', default: false },
    },
  },
  testCompose,
);

/**
 * @param {{ project?: string, keep: boolean, 'if-possible': boolean }} options
 * @param {string[]} positionals
 */
async function testCompose(options, positionals) {
  await ensureDependencies({ say: console.error });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-compose-'));
  const settings = {
    project: options.project ?? `${options.keep ? 'sluice-kept' : PROJECT}-${process.pid}`,
    folder,
    httpPorts: [await freePort(), await freePort()],
    endpointsPorts: [await freePort(), await freePort()],
  };
  const cleanUp = async () => {
    await compose(settings, ['down', '--volumes', '--remove-orphans', '--timeout', '10']).catch((error) => console.error(explain(error)));
    await docker(['image', 'rm', '--force', `sluice:${settings.project}`]).catch(() => {});
    await rm(folder, { recursive: true, force: true });
  };
  const missing = await whyNot();
  if (missing) {
    await rm(folder, { recursive: true, force: true });
    if (!options['if-possible']) throw new ExplainedError(missing);
    console.log(`The stories on Compose are skipped: ${missing}`);
    return 0;
  }
  const { code, summary } = await interruptible(
    async () => {
      const target = await start(settings);
      const result = await timed('stories', () => runStories(target, positionals));
      if (result.code !== 0) await printErrors(settings);
      return result;
    },
    async () => {
      if (options.keep) console.log(keptHint(settings));
      else await timed('removal', cleanUp);
    },
  );
  console.log(`${times()}\n${summary}`);
  return code;
}

/** Why this machine cannot run the containers; undefined if it can. */
async function whyNot() {
  const { code, output } = await run('docker', ['info', '--format', '{{.ServerVersion}}']);
  if (code !== 0) return `no container engine responds (docker info: ${output.trim().split('\n').at(-1)}).`;
  if ((await run('docker', ['compose', 'version'])).code !== 0) return 'Docker has no Compose plugin (docker compose version fails).';
  const problems = await Promise.all((await baseImages()).map(fetchImage));
  return problems.find((problem) => problem !== undefined);
}

/** The images of the Dockerfile's stages, and those of the services that are not built. */
async function baseImages() {
  const [dockerfile, composeFile] = await Promise.all(['Dockerfile', 'docker-compose.yml'].map((file) => readFile(inRoot(file), 'utf8')));
  const froms = [...(dockerfile ?? '').matchAll(/^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/gim)];
  const services = [...(composeFile ?? '').matchAll(/^\s+image:\s*['"]?([\w./:-]+)['"]?\s*$/gm)].map(([, image]) => image ?? '');
  const stages = froms.map(([, , stage]) => stage);
  return [...new Set([...froms.map(([, image]) => image ?? ''), ...services])].filter((image) => !stages.includes(image));
}

/**
 * @param {string} image
 * @returns {Promise<string | undefined>} why it is neither present nor available for download
 */
async function fetchImage(image) {
  if ((await run('docker', ['image', 'inspect', image])).code === 0) return undefined;
  const { code, output } = await run('docker', ['pull', '--quiet', image]);
  return code === 0 ? undefined : `the image ${image} is missing and cannot be pulled (${output.trim().split('\n').at(-1)}).`;
}

/** @param {import('./stories/compose.mjs').ComposeSettings} settings */
async function start(settings) {
  const [httpPort, endpointsPort, kafkaPort] = [settings.httpPorts[0], settings.endpointsPorts[0], await freePort()];
  const receiverHost = await hostOfThisMachine();
  // an address of this machine that containers can reach, but other machines cannot; unlike 127.0.0.1, it leads to them without a proxy
  const host = receiverHost === DOCKER_DESKTOP ? 'localhost' : receiverHost;
  const variables = {
    SLUICE_VERSION: settings.project,
    ...(host === receiverHost ? { SLUICE_HOST: host } : {}),
    SLUICE_HTTP_PORT: httpPort,
    SLUICE_ENDPOINTS_PORT: endpointsPort,
    SLUICE_ENDPOINTS_URL: `http://${host}:${endpointsPort}`,
    SLUICE_KAFKA_PORT: kafkaPort,
    SLUICE_ALLOW_PRIVATE_HOSTS: receiverHost,
  };
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(settings.folder, '.env'), lines.join(''));
  await writeFile(overrideFile(settings), '{"services":{}}');
  await removeLeftovers();
  await timed('build', () => compose(settings, ['build']));
  await timed('start', () => compose(settings, ['up', '--detach', '--wait', '--no-build']));
  const target = {
    kind: 'compose',
    apiUrl: `http://${host}:${httpPort}/v1`,
    endpointsUrl: `http://${host}:${endpointsPort}`,
    brokers: `localhost:${kafkaPort}`,
    apiKey: '',
    cli: `docker exec --interactive ${settings.project}-gateway-1 sluice`,
    receiverHost,
    lacks: { processes: 'starts stores and apps itself; run it with npm test' },
    compose: settings,
  };
  await writeFile(targetFile(settings), JSON.stringify(target));
  return target;
}

/** Removes the projects of runs that were killed. */
async function removeLeftovers() {
  const labels = await docker(['ps', '--all', '--format', '{{.Label "com.docker.compose.project"}}']);
  for (const project of new Set(labels.split('\n'))) {
    const pid = new RegExp(`^${PROJECT}-(\\d+)$`).exec(project)?.[1];
    if (!pid || isAlive(Number(pid))) continue;
    await docker(['compose', '--project-name', project, 'down', '--volumes', '--timeout', '1']);
    await docker(['image', 'rm', '--force', `sluice:${project}`]).catch(() => {});
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}

/** The name of this machine for containers: on Linux the address of the bridge, elsewhere the name that Docker Desktop provides. */
async function hostOfThisMachine() {
  const gateway = (await docker(['network', 'inspect', 'bridge', '--format', '{{(index .IPAM.Config 0).Gateway}}'])).trim();
  return (await isOwnAddress(gateway)) ? gateway : DOCKER_DESKTOP;
}

/** @param {import('./stories/compose.mjs').ComposeSettings} settings */
function targetFile({ folder }) {
  return join(folder, 'target.json');
}

/** @param {import('./stories/compose.mjs').ComposeSettings} settings */
function keptHint(settings) {
  return `Left running.
Run a story again: SLUICE_E2E_TARGET="$(cat ${targetFile(settings)})" npm test -- test/page-walk --selectProjects e2e
Remove it:         docker compose --project-name ${settings.project} down --volumes && docker image rm sluice:${settings.project}`;
}

/** @param {import('./stories/compose.mjs').ComposeSettings} settings */
async function printErrors(settings) {
  const printed = await compose(settings, ['logs', '--no-color']);
  const errors = printed.split('\n').filter((line) => /"level":"(error|fatal)"/.test(line));
  if (errors.length > 0) console.error(['Errors of the services:', ...errors.slice(-40).map((line) => line.slice(0, 1000))].join('\n'));
}
