import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { kafkaCommand, removeContainer } from '../setup/kafka.mjs';
import { brokerProperties, DATA_FOLDER, keptPort } from './broker-properties.mjs';
import { moveMisplacedData } from './misplaced-data.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { callInOwnProcess } from '../processes/own-process.mjs';
import { stopLeftover } from '../pid-files/pid-file.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { writeSecret } from '../shell/secret-file.mjs';
import { notStarted, startServiceProcess, untilReady, withLogFile } from '../processes/service-process.mjs';

// A graceful stop takes 1 s. A broker that is killed during it checks all its logs at the next start.
const GRACE_MS = 20_000;

/**
 * A broker that requires logins.
 * @typedef {object} BrokerSecurity
 * @property {(ports: { port: number, controllerPort: number }) => string} properties that take precedence over the usual ones
 * @property {Record<string, string>} users of SCRAM, with their passwords; created when the storage is formatted
 * @property {{ ssl?: { ca: string }, sasl?: import('kafkajs').SASLOptions }} client how the readiness check logs in
 * @property {string} [bootstrap] the listener that requires this login; default: `port` of localhost, which a certificate can name
 * @property {ServicesLogin} [services] with it, clients without a login get the public topics
 *
 * A login that the broker may not know yet.
 * @typedef {{ login: BrokerSecurity['client'], passwordFile: string, setPassword(): Promise<void>, accepted(): void }} ServicesLogin
 */

/**
 * Starts Apache Kafka: one node, on 127.0.0.1 only, with all of its files in one folder.
 *
 * @param {object} options
 * @param {string} options.dir
 * @param {number} options.port
 * @param {number} [options.controllerPort] for the controller; default: the previous one, or a free port
 * @param {BrokerSecurity} [options.security] default: everyone who reaches the port has all permissions
 * @param {(line: string) => void} [options.log]
 * @param {AbortSignal} [options.stopped] ends a broker that does not respond yet
 * @returns {Promise<import('../processes/service-process.mjs').ServiceProcess & { brokers: string }>} once it responds
 */
export async function startBroker({ dir, port, controllerPort, security, log = () => {}, stopped }) {
  const config = join(dir, 'server.properties');
  const data = brokerData(dir);
  const scratch = join(dir, 'tmp');
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await stopLeftoverBroker(dir);
  // Java unpacks native libraries there and does not remove them when killed.
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch);

  const inner = controllerPort ?? (await keptPort(config, 'CONTROLLER', [port]));
  const properties = brokerProperties({ port, controllerPort: inner });
  writeSecret(config, `${properties}${security?.properties({ port, controllerPort: inner }) ?? ''}`);
  if (!hasStorage(dir)) await moveMisplacedData(data, log);
  if (!hasStorage(dir)) {
    log("… preparing the broker's storage");
    await formatStorage(dir, config, security?.users ?? {});
  }

  const wasStopped = existsSync(join(data, '.kafka_cleanshutdown'));
  const { command, args, options, ended } = await kafkaCommand(
    dir,
    [...JVM_FLAGS, `-Djava.io.tmpdir=${scratch}`],
    ['kafka.Kafka', config],
    {
      keep: true,
    },
  );
  const logFile = brokerLog(dir);
  const broker = withLogFile(logFile, (fd) =>
    startServiceProcess({
      name: 'broker',
      kind: 'store',
      ...{ command, args },
      spawn: { ...options, stdio: ['ignore', fd, fd] },
      pidFile: brokerPidFile(dir),
      graceMs: GRACE_MS,
    }),
  );
  let hasServed = false;
  void broker.exited.then(({ code }) => ended?.(hasServed && code !== null));

  const brokers = security?.bootstrap ?? `${security ? 'localhost' : '127.0.0.1'}:${port}`;
  const ready = (/** @type {AbortSignal} */ abandoned) => prepare({ brokers, logFile, mayFailGroups: !wasStopped, security, abandoned });
  const exit = await untilReady(broker, ready, stopped);
  if (exit) throw notStarted('The broker', exit, logFile);
  hasServed = true;
  return { ...broker, brokers };
}

/**
 * Resolves when clients can use the broker.
 * @param {{ brokers: string, logFile: string, mayFailGroups: boolean, security: BrokerSecurity | undefined, abandoned: AbortSignal }} options
 */
async function prepare({ brokers, logFile, mayFailGroups, security, abandoned }) {
  const services = security?.services;
  const broker = { brokers, logFile, client: security?.client, services: services?.login };
  const module = inRoot('scripts', 'stores', 'prepare-broker.mjs');
  if (!(await callInOwnProcess(module, { ...broker, mayFailGroups }, abandoned))) {
    abandoned.throwIfAborted();
    // The first start, data of a version without logins, or a password file that was removed or changed
    await services?.setPassword();
    if (!(await callInOwnProcess(module, { ...broker, mayFailGroups: false }, abandoned)))
      throw new ExplainedError(`The broker does not accept the password in ${services?.passwordFile}.`);
  }
  services?.accepted();
}

/**
 * Stops the broker that a killed launcher has left running on this folder.
 * @param {string} dir
 */
export async function stopLeftoverBroker(dir) {
  const stopped = await stopLeftover(brokerPidFile(dir), { graceMs: GRACE_MS });
  await removeContainer(dir);
  return stopped;
}

/** @param {string} dir */
export const brokerLog = (dir) => join(dir, 'broker.log');

/** @param {string} dir */
export const brokerData = (dir) => join(dir, DATA_FOLDER);

/**
 * Whether a broker has been prepared in this folder.
 * @param {string} dir
 */
export const hasStorage = (dir) => existsSync(join(brokerData(dir), 'meta.properties'));

/** @param {string} dir */
export const brokerPidFile = (dir) => join(dir, 'broker.pid');

// A small heap, and only the first compiler: beside five apps on two cores, memory and a quick start
// matter most. The young generation is small because all of it is used sooner or later. Huge pages save 5 to 10 % of
// the broker's CPU under load, and occupy 2 MB more.
const JVM_FLAGS = [
  ...['-Xms32m', '-Xmx256m', '-Xmn8m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
  // only Linux knows this option
  ...(process.platform === 'linux' ? ['-XX:+UseTransparentHugePages'] : []),
  ...['-Djava.awt.headless=true', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-Dorg.slf4j.simpleLogger.showDateTime=true'],
  '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS',
];

/**
 * @param {string} dir
 * @param {string} config
 * @param {Record<string, string>} users of SCRAM, with their passwords
 */
async function formatStorage(dir, config, users) {
  const scram = Object.entries(users).flatMap(([name, password]) => ['--add-scram', `SCRAM-SHA-512=[name=${name},password=${password}]`]);
  const program = ['kafka.tools.StorageTool', 'format', '--cluster-id', newClusterId(), '--config', config, ...scram];
  const { command, args, options } = await kafkaCommand(dir, JVM_FLAGS, program);
  const { code, output } = await run(command, args, options);
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe broker's storage could not be formatted, see above.`);
}

/** Kafka rejects an id that begins with a dash, because it would look like an option on a command line. */
function newClusterId() {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}
