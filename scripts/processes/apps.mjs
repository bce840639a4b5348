import { APPS, bundleOf, COMPILED } from '../setup/bundles.mjs';
import { node24 } from '../setup/node24.mjs';
import { ROOT } from '../shell/paths.mjs';
import { forEachLine } from './lines.mjs';
import { startServiceProcess } from './service-process.mjs';
import { Supervisor } from './supervisor.mjs';

export { APPS };

/** @typedef {import('../setup/bundles.mjs').App} App */

/**
 * Without SIGUSR1 nobody can open the inspector of a running service. One thread helps to collect garbage and to compile: four of them would occupy 3 MB more in each
 * service, and wait for each other while processors are short. `docker/sluice.sh` has the same options.
 */
const OPTIONS = ['--disable-sigusr1', '--v8-pool-size=1'];

/** Ctrl-C should not take as long as the longest run. */
export const SHUTDOWN_TIMEOUT = '8s';

/**
 * @typedef {object} AppOptions
 * @property {Record<string, string | undefined>} env in addition to this process's own
 * @property {(app: App, line: string) => void} [log] receives the output of the app, line by line
 * @property {(app: App) => string} [pidFile]
 * @property {number} [graceMs] how long an app may take to stop before it is killed
 */

/**
 * Starts one app. Over the channel to its parent, the app reports that it is ready, and it exits by itself when this process dies.
 *
 * @param {AppOptions & { app: App, onExit?: (exit: import('./service-process.mjs').Exit) => void }} options
 * @returns {import('./service-process.mjs').ServiceProcess & { ready: Promise<boolean> }} `ready`: false if it ended before that
 */
export function startApp({ app, env, log, pidFile, graceMs, onExit }) {
  const service = startServiceProcess({
    name: app,
    kind: 'app',
    command: node24(),
    args: [...OPTIONS, bundleOf(app)],
    spawn: { cwd: ROOT, env: appEnvironment(env), stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
    pidFile: pidFile?.(app),
    graceMs,
  });
  const { child, exited } = service;
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) forEachLine(stream, (line) => log?.(app, line));
  }
  /** @type {Promise<boolean>} */
  const ready = new Promise((resolve) => {
    child.on('message', (message) => {
      if (/** @type {{ type?: string } | null} */ (message)?.type === 'ready') resolve(true);
    });
    void exited.then(() => resolve(false));
  });
  if (onExit) void exited.then(onExit);
  return { ...service, ready };
}

/**
 * The apps of a whole system; an app that dies is restarted.
 *
 * @param {AppOptions & { say?: (line: string) => void, envOf?: (app: App) => Record<string, string> }} options `say` is called when an app has died;
 *   `envOf` returns the additional environment of one app
 */
export function superviseApps({ say, envOf = () => ({}), ...options }) {
  const supervised = new Map(
    APPS.map((app) => [
      app,
      new Supervisor({ name: app, say, launch: async () => startApp({ ...options, env: { ...options.env, ...envOf(app) }, app }) }),
    ]),
  );
  /** @param {App} app */
  const one = (app) => {
    const found = supervised.get(app);
    if (!found) throw new Error(`there is no app "${app}"`);
    return found;
  };
  return {
    /** Starts them concurrently; resolves when all are ready. */
    startAll: () => Promise.all(APPS.map((app) => one(app).start())).then(() => {}),
    /** The gateway first: the others still reply to the requests that it is finishing. */
    stopAll: async () => {
      await one('gateway').stop();
      await Promise.all(APPS.map((app) => one(app).stop()));
    },
    /** @param {App} app */
    start: (app) =>
      one(app)
        .start()
        .then(() => {}),
    /**
     * The app stays down until `start(app)`.
     * @param {App} app
     * @param {{ signal?: NodeJS.Signals }} [options] SIGKILL: at once instead of gracefully
     */
    stop: (app, options) => one(app).stop(options),
    /**
     * Sends a signal, by default SIGKILL; an app that dies of it is restarted.
     * @param {App} app
     * @param {NodeJS.Signals} [signal]
     */
    kill: (app, signal) => one(app).kill(signal),
    /** @param {App} app */
    whenReady: (app) =>
      one(app)
        .whenReady()
        .then(() => {}),
    /**
     * @param {App} app
     * @returns {number | undefined} undefined while it is down
     */
    pid: (app) => one(app).pid,
  };
}

/**
 * The base environment of an app: that of this process, without variables of the launcher and of npm.
 * @param {Record<string, string | undefined>} env
 * @returns {NodeJS.ProcessEnv}
 */
export function appEnvironment(env) {
  const own = Object.entries(process.env).filter(
    ([name]) => (!name.startsWith('npm_') || NPM_SETTINGS.has(name)) && !FOR_THE_LAUNCHER.has(name),
  );
  return {
    ...Object.fromEntries(own),
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
    NODE_COMPILE_CACHE: COMPILED,
    SLUICE_SHUTDOWN_TIMEOUT: process.env['SLUICE_SHUTDOWN_TIMEOUT'] || SHUTDOWN_TIMEOUT,
    SLUICE_SHUTDOWN_DELAY: process.env['SLUICE_SHUTDOWN_DELAY'] || '0s',
    ...env,
  };
}

/** Where npm finds its settings: packages for components come from the registry that npm is configured for. */
const NPM_SETTINGS = new Set(['npm_config_registry', 'npm_config_userconfig', 'npm_config_globalconfig']);

const FOR_THE_LAUNCHER = new Set(['SLUICE_API_KEY', 'SLUICE_KAFKA_PORT', 'SLUICE_POSTGRES_PORT', 'NODE_OPTIONS', 'INIT_CWD']);
