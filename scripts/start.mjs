// npm start: installs what is missing, starts a broker, a database and the five apps, and keeps them running until it is stopped.
import './setup/check-platform.mjs';
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { announced } from './shell/announced.mjs';
import { appEnvironment, APPS, superviseApps } from './processes/apps.mjs';
import { banner } from './launch/banner.mjs';
import { brokerAccess } from './stores/broker-access.mjs';
import { brokerLog, startBroker } from './stores/broker.mjs';
import { announce, dataFolder, lockDataFolder, stopLeftovers, unlockDataFolder, withdraw } from './launch/data-folder.mjs';
import { loadDotEnv } from './launch/dot-env.mjs';
import { explain, ExplainedError } from './shell/explained-error.mjs';
import { ensureFirstAccount, keyWorks, readKeptKey } from './launch/first-account.mjs';
import { checkKeptFiles } from './launch/kept-files.mjs';
import { lastStart, startHash } from './launch/last-start.mjs';
import { formatLogLine } from './launch/log-lines.mjs';
import { commandOf } from './setup/bundles.mjs';
import { node24 } from './setup/node24.mjs';
import { printer, standardOutput } from './shell/output.mjs';
import { inRoot, ROOT } from './shell/paths.mjs';
import { canCompareNames, misspeltVariables } from './launch/misspelt-variables.mjs';
import { hasCluster, postgresEnvironment, postgresLog, startPostgres } from './stores/postgres.mjs';
import { run, stopCommands } from './shell/run.mjs';
import { checkPorts, checkServices } from './launch/refusals.mjs';
import { liveServices } from './processes/service-process.mjs';
import { writeSecret } from './shell/secret-file.mjs';
import { newSecretsKey } from './shell/secrets-key.mjs';
import { secretsInFiles } from './launch/secrets-in-files.mjs';
import { apiUrl, healthPorts, localUrl, publicBrokers, reachableHosts, readSettings } from './launch/settings.mjs';
import { ensureKafka, ensureBuild, ensureDependencies } from './setup/setup.mjs';
import { stopOnSignals } from './processes/stop-on-signals.mjs';
import { Supervisor } from './processes/supervisor.mjs';

/** From when the stores respond; usually a second. */
const READY_WITHIN_MS = 5000;

const output = standardOutput();
const print = printer(output);
/** @param {string} app @param {string} line */
const printLog = (app, line) => print(formatLogLine(app, line, { isTerminal: process.stdout.isTTY }));
/** @param {string} line */
const say = (line) => printLog('sluice', line);

/**
 * The processes that have been started so far and must be stopped.
 * @type {{ folder?: import('./launch/data-folder.mjs').DataFolder,
 *   stores: { stop(): Promise<void> }[], apps?: ReturnType<typeof superviseApps> }}
 */
const started = { stores: [] };
const stopping = stopOnSignals({ stop: stopAll, kill: killAll, say, output });

try {
  await start();
} catch (error) {
  // A failure caused by the shutdown needs no explanation.
  if (!stopping.begun) console.error(explain(error));
  await stopping.begin(1);
}

async function start() {
  loadDotEnv();
  // First: one of them may be the reason why this start is refused. The first start has yet to build the comparison.
  const isBuilt = canCompareNames();
  if (isBuilt) await reportMisspeltVariables();
  const settings = readSettings(process.env);
  const folder = dataFolder(settings.dataDir);
  // A start that is refused must not leave a new folder behind. In one that exists, an earlier start may have left processes, which use the ports.
  if (existsSync(folder.dir)) await takeOver(folder, settings);
  await checkPorts(settings);

  const [, build] = await Promise.all([
    settings.kafkaBrokers ? undefined : ensureKafka({ say: print }),
    ensureDependencies({ say: print }).then(() => ensureBuild({ say: print })),
  ]);
  await goOn();
  if (!isBuilt) await reportMisspeltVariables();
  await checkKeptFiles(folder, settings, process.env);
  const hash = startHash(build, process.env);
  const isRepeated = lastStart(folder) === hash;
  // Awaited below: in a folder with data, the stores start meanwhile.
  const checked = isRepeated
    ? undefined
    : announced(say, 'checking the configuration and the sandbox', 'a few seconds', () => checkServices(settings));
  checked?.catch(() => {});
  if (!started.folder) {
    await checked;
    await goOn();
    // The first start may have taken a minute so far, and another program may have taken a port.
    await checkPorts(settings);
    await takeOver(folder, settings);
  }

  // Before there is data that it encrypts: without its key, a folder with data is refused.
  const key = secretsKey(folder);
  const { kafka, isPrepared, respond } = await startStores(settings, folder, isRepeated);
  await Promise.all([checked, isPrepared ? undefined : respond]);
  await goOn();

  const stores = { ...storeVariables(settings, folder, kafka.environment), ...key };
  const env = { ...stores, ...reachableHosts(settings, kafka.ports), ...addressVariables(settings) };
  if (!isPrepared) {
    say('preparing databases and topics (a few seconds)');
    await migrate(env);
    await goOn();
  }

  const { apiKey, isNew } = await startServices(settings, folder, env, isPrepared ? respond : undefined);
  writeSecret(folder.lastStart, hash);
  announce(folder, stores, { url: apiUrl(settings), kafka: publicBrokers(settings) });
  print(banner({ settings, apiKey, keyFile: folder.apiKey, showsKey: process.stdout.isTTY || isNew }));
  const { freeMemoryWhenIdle } = await import(inRoot('dist', 'libs', 'service', 'src', 'idle-memory.js'));
  freeMemoryWhenIdle();
}

/**
 * Starts those of the stores that are not external. `respond` resolves when they respond; `isPrepared`: the services can be started before that.
 * @param {import('./launch/settings.mjs').Settings} settings
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {boolean} isRepeated whether the last successful start was the same
 */
async function startStores(settings, folder, isRepeated) {
  const own = [...(settings.kafkaBrokers ? [] : ['Apache Kafka']), ...(settings.databaseUrl ? [] : ['PostgreSQL'])];
  say(`the data is in ${folder.dir}`);
  if (own.length > 0) say(`starting ${own.join(' and ')} (about 20 s the first time)`);
  const kafka = settings.kafkaBrokers
    ? { environment: { KAFKA_BROKERS: settings.kafkaBrokers }, ports: [], isKept: true }
    : await brokerAccess(folder.broker, settings.kafkaPort);
  // Written again when this start has succeeded: another version may change the data before it fails.
  if (!isRepeated) rmSync(folder.lastStart, { force: true });
  // The services then load while the stores start, and wait for them. Those of another version would warn of what the migration has yet to change.
  const isPrepared = isRepeated && kafka.isKept && (settings.databaseUrl !== undefined || hasCluster(folder.postgres));
  const respond = Promise.all([
    'security' in kafka ? runBroker(folder, settings.kafkaPort, kafka) : undefined,
    settings.databaseUrl ? undefined : runPostgres(folder, settings.postgresPort),
  ]);
  respond.catch(() => {});
  return { kafka, isPrepared, respond };
}

/**
 * The variables with which the services find their stores, and secrets in files.
 * @param {import('./launch/settings.mjs').Settings} settings
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {Record<string, string>} kafka
 */
function storeVariables(settings, folder, kafka) {
  return {
    ...(process.env.DATABASE_URL_FILE && { DATABASE_URL_FILE: resolve(process.env.DATABASE_URL_FILE) }),
    ...secretsInFiles(process.env, folder.secrets),
    ...kafka,
    ...(!settings.databaseUrl && postgresEnvironment(folder.postgres, settings.postgresPort)),
  };
}

/**
 * The variables of the services that the settings determine.
 * @param {import('./launch/settings.mjs').Settings} settings
 */
function addressVariables(settings) {
  return {
    SLUICE_HTTP_HOST: settings.httpHost,
    SLUICE_HEALTH_HOST: settings.healthHost,
    SLUICE_ENDPOINTS_HOST: settings.endpointsHost,
    SLUICE_HTTP_PORT: String(settings.httpPort),
    SLUICE_ENDPOINTS_PORT: String(settings.endpointsPort),
    SLUICE_ENDPOINTS_URL: process.env.SLUICE_ENDPOINTS_URL || localUrl(settings.endpointsHost, settings.endpointsPort),
    SLUICE_DATA_DIR: settings.dataDir,
    SLUICE_LOG_COMPONENTS: process.env.SLUICE_LOG_COMPONENTS || 'true',
  };
}

/**
 * Starts the services. Resolves when they are ready, with the key of the first account; `isNew`: this start has generated it.
 * @param {import('./launch/settings.mjs').Settings} settings
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {Record<string, string>} env
 * @param {Promise<unknown>} [respond] when the stores respond, if they may not yet: then their data may have to be migrated
 */
async function startServices(settings, folder, env, respond) {
  // SLUICE_API_KEY is also a variable of the command line, and may belong to another installation: it must not replace the key of this one
  const keptKey = readKeptKey(folder.apiKey);
  const givenKey = keptKey ? undefined : settings.apiKey;
  const health = healthPorts(settings);
  /** @param {import('./processes/apps.mjs').App} app */
  const envOf = (app) => ({ SLUICE_HEALTH_PORT: String(health.get(app) ?? 0), SLUICE_STARTUP_TIMEOUT: settings.startupTimeout });
  say(`starting the services: ${APPS.join(', ')} (up to half a minute)`);
  started.apps = superviseApps({ env, envOf, log: printLog, say, pidFile: folder.appPidFile, graceMs: settings.graceMs });
  const ready = started.apps.startAll();
  const migrated = respond?.then(() => migrateUnless(ready, env));
  const account = async () => {
    await migrated;
    return ensureFirstAccount({ env, keyFile: folder.apiKey, apiKey: givenKey });
  };
  if (keptKey && settings.apiKey && settings.apiKey !== keptKey)
    say(`SLUICE_API_KEY is ignored, because it only sets the first key of a new installation; the key of this one is in ${folder.apiKey}`);
  // While the apps start. If an earlier start has stored a key, an account most likely exists.
  let [apiKey] = await Promise.all([keptKey ?? account(), ready, migrated]);
  await goOn();
  if (keptKey && !(await keyWorks(settings, keptKey))) apiKey = await account();
  return { apiKey, isNew: ![keptKey, givenKey].includes(apiKey) };
}

async function reportMisspeltVariables() {
  for (const line of await misspeltVariables(process.env)) say(line);
}

/**
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {import('./launch/settings.mjs').Settings} settings
 */
async function takeOver(folder, { graceMs }) {
  await lockDataFolder(folder, { say, graceMs, lost });
  started.folder = folder;
  if (await stopLeftovers(folder, { graceMs })) say('stopped processes of an earlier start');
}

/**
 * The key that encrypts secrets: generated at the first start, unless the operator has set one.
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @returns {Record<string, string>}
 */
function secretsKey({ secretsKey: file }) {
  if (process.env.SLUICE_SECRETS_KEY || process.env.SLUICE_SECRETS_KEY_FILE) return {};
  if (!existsSync(file)) writeSecret(file, newSecretsKey());
  return { SLUICE_SECRETS_KEY_FILE: file };
}

/** Between two steps: during a shutdown there is no next step, and the process ends soon. */
async function goOn() {
  if (stopping.begun) await new Promise(() => {});
}

/**
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {number} port
 * @param {import('./stores/broker-access.mjs').BrokerAccess} access
 */
async function runBroker(folder, port, { controllerPort, security }) {
  const broker = new Supervisor({
    name: 'broker',
    say,
    logFile: brokerLog(folder.broker),
    launch: (stopped) => startBroker({ dir: folder.broker, port, controllerPort, security, log: say, stopped }),
  });
  started.stores.push(broker);
  await broker.start();
}

/**
 * @param {import('./launch/data-folder.mjs').DataFolder} folder
 * @param {number} port
 */
async function runPostgres(folder, port) {
  const postgres = new Supervisor({
    name: 'postgres',
    say,
    logFile: postgresLog(folder.postgres),
    launch: (stopped) => startPostgres({ dir: folder.postgres, port, log: say, stopped }),
  });
  started.stores.push(postgres);
  await postgres.start();
}

/**
 * Waits for external stores, too.
 * @param {Record<string, string>} env
 */
async function migrate(env) {
  const { code, output } = await run(node24(), [commandOf('migrate')], { cwd: ROOT, env: appEnvironment(env) });
  for (const line of output.split('\n').filter(Boolean)) printLog('migrate', line);
  if (code !== 0) throw new ExplainedError('The databases or the topics could not be migrated, see above.');
}

/**
 * Services of the same build are ready without a migration, unless the data is older, for instance that of a backup.
 * @param {Promise<void>} ready
 * @param {Record<string, string>} env
 */
async function migrateUnless(ready, env) {
  const isReady = await Promise.race([ready.then(() => true), sleep(READY_WITHIN_MS, false, { ref: false })]);
  if (!isReady) await migrate(env);
}

/** Stops the apps first, while the broker and the database still respond; then these two concurrently; releases the lock last. */
async function stopAll() {
  if (started.folder) withdraw(started.folder);
  await stopCommands();
  await started.apps?.stopAll();
  await Promise.all(started.stores.map((store) => store.stop()));
  if (started.folder) unlockDataFolder(started.folder);
}

/** Another instance has taken the data folder, because this one was suspended: both must not write to it. */
async function lost() {
  say('another instance has taken the data folder while this one was suspended: this one is killed');
  await killAll();
  process.exit(1);
}

async function killAll() {
  // Not awaited: this only prevents restarts of killed processes.
  void Promise.allSettled([stopCommands(), started.apps?.stopAll(), ...started.stores.map((store) => store.stop())]);
  await Promise.all(liveServices().map((service) => service.kill()));
  if (started.folder) unlockDataFolder(started.folder);
}
