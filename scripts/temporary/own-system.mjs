import { rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { APPS, superviseApps } from '../processes/apps.mjs';
import { startBroker } from '../stores/broker.mjs';
import { freePort } from '../shell/ports.mjs';
import { startPostgres } from '../stores/postgres.mjs';
import { newSecretsKey } from '../shell/secrets-key.mjs';
import { ownFolder, runOurs } from './own-stores.mjs';

/**
 * The ports of a system, all on 127.0.0.1.
 *
 * @typedef {{ broker: number, controller: number, postgres: number, http: number, endpoints: number, health: Map<App, number> }} Ports
 * @typedef {import('../processes/apps.mjs').App} App
 */

/** @returns {Promise<Ports>} */
export async function freePorts() {
  const [broker, controller, postgres] = [await freePort(), await freePort(), await freePort()];
  const [http, endpoints] = [await freePort(), await freePort()];
  /** @type {Map<App, number>} */
  const health = new Map();
  for (const app of APPS) health.set(app, await freePort());
  return { broker, controller, postgres, http, endpoints, health };
}

/**
 * A whole system, for a benchmark or an attack: broker, database (durable, as with `npm start`) and the five apps, in a temporary folder. Everything is
 * removed when this process ends, for whatever reason.
 *
 * @param {Record<string, string>} [variables] of the apps' environment
 * @param {Ports} [chosen] default: free ones, and no health servers
 */
export async function startOwnSystem(variables = {}, chosen) {
  const folder = await ownFolder();
  const ports = chosen ?? (await freePorts());
  const [broker, postgres] = await Promise.all([
    startBroker({ dir: join(folder, 'broker'), port: ports.broker, controllerPort: ports.controller }),
    startPostgres({ dir: join(folder, 'postgres'), port: ports.postgres }),
  ]);
  const env = {
    KAFKA_BROKERS: broker.brokers,
    DATABASE_URL: postgres.url,
    SLUICE_SECRETS_KEY: newSecretsKey(),
    SLUICE_HTTP_PORT: String(ports.http),
    SLUICE_ENDPOINTS_PORT: String(ports.endpoints),
    SLUICE_DATA_DIR: folder,
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
    SLUICE_LOG_LEVEL: 'warn',
    ...variables,
  };
  await runOurs(env, 'dist/bundles/migrate.js');
  const envOf = (/** @type {App} */ app) => ({ SLUICE_HEALTH_PORT: String(chosen?.health.get(app) ?? 0) });
  const apps = superviseApps({ env, envOf, log: (app, line) => console.error(app, line) });
  await apps.startAll();
  const newAccount = async (/** @type {string} */ email) =>
    /** @type {string} */ (
      JSON.parse(await runOurs(env, 'dist/bundles/gateway-command.js', 'account', 'create', '--email', email, '--json')).api_key
    );
  /** @type {ReturnType<typeof superviseApps>[]} */
  const replicas = [];
  const pidsOf = (/** @type {ReturnType<typeof superviseApps>} */ set, suffix = '') =>
    Object.fromEntries(APPS.map((app) => [`${app}${suffix}`, set.pid(app)]));
  return {
    apiUrl: `http://127.0.0.1:${ports.http}/v1`,
    apiKey: await newAccount('bench@example.com'),
    /** Creates another account and returns its key. */
    newAccount,
    /** Contains everything, also the password of the database. */
    folder,
    brokers: broker.brokers,
    databaseUrl: postgres.url,
    apps,
    /** Process ids by name, for CPU figures. */
    pids: () => ({
      broker: broker.pid,
      postgres: postgres.pid,
      ...pidsOf(apps),
      ...Object.assign({}, ...replicas.map((set) => pidsOf(set, '-2'))),
    }),
    /** Starts a second replica of each app, with other ports. */
    addReplicas: async () => {
      const ports = { SLUICE_HTTP_PORT: String(await freePort()), SLUICE_ENDPOINTS_PORT: String(await freePort()) };
      const second = superviseApps({ env: { ...env, ...ports }, log: (app, line) => console.error(app, line) });
      replicas.push(second);
      await second.startAll();
    },
    stop: async () => {
      await Promise.all([apps, ...replicas].map((set) => set.stopAll()));
      await Promise.all([broker.stop(), postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A client of the REST API over kept-alive connections.
 *
 * @param {{ apiUrl: string, apiKey: string }} system
 */
export function apiClient({ apiUrl, apiKey }) {
  // needs a third of the CPU of fetch, which on a small machine is taken from the system
  const agent = new Agent({ keepAlive: true });
  /**
   * @param {string} method @param {string} path @param {object} [body]
   * @returns {Promise<any>} `data` of the response
   */
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) };
      const outgoing = request(`${apiUrl}${path}`, { method, agent, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part) => (text += part));
        response.on('end', () => {
          if (!/^2/.test(String(response.statusCode))) return reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
          resolve(text === '' ? undefined : JSON.parse(text).data);
        });
      });
      outgoing.on('error', reject);
      outgoing.end(body && JSON.stringify(body));
    });
}
