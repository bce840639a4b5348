// npm run test:compose [-- options] [-- arguments for jest]: runs the stories of test/ against the containers of docker-compose.yml.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './shell/command.mjs';
import { compose, docker } from './stories/compose.mjs';
import { removeProject, startProject, whyNoContainers } from './stories/compose-project.mjs';
import { ExplainedError } from './shell/explained-error.mjs';
import { interruptible } from './stories/interruptible.mjs';
import { freePort, isOwnAddress } from './shell/ports.mjs';
import { runStories } from './stories/run-jest.mjs';
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
  const missing = await whyNoContainers();
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
      else await timed('removal', () => removeProject(settings));
    },
  );
  console.log(`${times()}\n${summary}`);
  return code;
}

/** @param {import('./stories/compose.mjs').ComposeSettings} settings */
async function start(settings) {
  const [httpPort, endpointsPort, kafkaPort] = [settings.httpPorts[0], settings.endpointsPorts[0], await freePort()];
  const receiverHost = await hostOfThisMachine();
  // an address of this machine that containers can reach, but other machines cannot; unlike 127.0.0.1, it leads to them without a proxy
  const host = receiverHost === DOCKER_DESKTOP ? 'localhost' : receiverHost;
  const variables = {
    ...(host === receiverHost ? { SLUICE_HOST: host } : {}),
    SLUICE_HTTP_PORT: httpPort,
    SLUICE_ENDPOINTS_PORT: endpointsPort,
    SLUICE_ENDPOINTS_URL: `http://${host}:${endpointsPort}`,
    SLUICE_KAFKA_PORT: kafkaPort,
    SLUICE_ALLOW_PRIVATE_HOSTS: receiverHost,
  };
  await timed('build and start', () => startProject(settings, variables));
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
