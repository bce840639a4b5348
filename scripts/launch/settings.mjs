import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { APPS, SHUTDOWN_TIMEOUT } from '../processes/apps.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { ROOT } from '../shell/paths.mjs';

// A first trial has its sources and webhooks on this machine, so the loopback addresses are allowed.
const LOOPBACK = '127.0.0.0/8,::1,localhost';

// A store that this launcher has started may recover for a long time after a crash. If it ends instead, so does the start.
const OWN_STORES_TIMEOUT = '1h';

/** @param {string} text */
export const isApiKey = (text) => /^[\x21-\x7e]{8,128}$/.test(text);

/** A service that gives up its work after SLUICE_SHUTDOWN_TIMEOUT still has to close its connections. */
const ENDS_WITHIN_MS = 2000;

/** As in libs/config, which is compiled only later. @type {Record<string, number>} */
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_TIMEOUT = '20d';

/**
 * Components and webhooks may reach this machine, but neither the ports of Sluice itself nor those of shells and well-known stores.
 *
 * @param {Settings} settings
 * @param {number[]} [otherPorts] of the stores
 * @returns {Record<string, string>} variables of the services
 */
export const reachableHosts = (settings, otherPorts = []) => ({
  SLUICE_ALLOW_PRIVATE_HOSTS: settings.allowPrivateHosts,
  SLUICE_PROTECTED_HOSTS: [
    ...[...portsInUse(settings).map(({ port }) => port), ...otherPorts].map((port) => `127.0.0.1:${port}`),
    settings.protectedHosts,
  ]
    .filter(Boolean)
    .join(','),
});

/** The variables that only `npm start` reads; the services declare theirs. */
export const LAUNCHER_VARIABLES = [
  {
    name: 'SLUICE_HOST',
    fallback: '127.0.0.1',
    description:
      'Address on which the REST API and the endpoints of sources listen; 0.0.0.0 opens them to the network. Compose reads it, too.',
  },
  { name: 'SLUICE_KAFKA_PORT', fallback: '9092', description: 'Port of the embedded Kafka broker, on 127.0.0.1. Compose reads it, too.' },
  { name: 'SLUICE_POSTGRES_PORT', fallback: '5433', description: 'Port of the embedded PostgreSQL server, on 127.0.0.1.' },
];

/**
 * The settings of `npm start`.
 *
 * @typedef {object} Settings
 * @property {string} dataDir
 * @property {string} httpHost
 * @property {string} endpointsHost
 * @property {string} healthHost
 * @property {number} httpPort
 * @property {number} endpointsPort
 * @property {number} healthPort of the first app; 0: none
 * @property {number} kafkaPort for the embedded broker
 * @property {number} postgresPort for the embedded server
 * @property {string} [kafkaBrokers] an existing broker instead
 * @property {string} [databaseUrl] an existing server instead
 * @property {string} [apiKey] of the first account
 * @property {string} allowPrivateHosts
 * @property {string} protectedHosts beside our own
 * @property {number} graceMs how long a service may take to stop before it is killed: longer than SLUICE_SHUTDOWN_TIMEOUT
 * @property {string} startupTimeout SLUICE_STARTUP_TIMEOUT of the services; empty: their default
 */

/**
 * @param {Record<string, string | undefined>} given
 * @returns {Settings}
 * @throws {ExplainedError} with a sentence for every bad variable
 */
export function readSettings(given) {
  /** @type {string[]} */
  const problems = [];
  const env = withSecretsFromFiles(given, problems);
  /** @param {string} name @param {number} fallback @param {number} [highest] */
  const port = (name, fallback, highest = 65_535) => {
    const text = env[name] || String(fallback);
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= 1 && value <= highest) return value;
    problems.push(`${name} must be a port, a whole number from 1 to ${highest}, not "${text}".`);
    return NaN;
  };
  /** @param {string} name @param {(text: string) => boolean} isRight @param {string} expected @param {boolean} [secret] */
  const optional = (name, isRight, expected, secret = false) => {
    const text = env[name] || undefined;
    if (text === undefined || isRight(text)) return text;
    problems.push(`${name} must be ${expected}${secret ? '' : `, not "${text}"`}.`);
    return undefined;
  };

  const host = optional('SLUICE_HOST', (text) => isIP(text) !== 0, 'an IP address such as 127.0.0.1 or 0.0.0.0') ?? '127.0.0.1';
  const shutdownTimeout =
    optional(
      'SLUICE_SHUTDOWN_TIMEOUT',
      (text) => milliseconds(text) > 0 && milliseconds(text) <= milliseconds(LONGEST_TIMEOUT),
      `a duration from 1ms to ${LONGEST_TIMEOUT}`,
    ) ?? SHUTDOWN_TIMEOUT;
  /** @type {Settings} */
  const settings = {
    dataDir: dataFolderPath(env),
    httpHost: env['SLUICE_HTTP_HOST'] || host,
    endpointsHost: env['SLUICE_ENDPOINTS_HOST'] || host,
    healthHost: env['SLUICE_HEALTH_HOST'] || host,
    httpPort: port('SLUICE_HTTP_PORT', 3000),
    endpointsPort: port('SLUICE_ENDPOINTS_PORT', 3001),
    healthPort: Number(env['SLUICE_HEALTH_PORT'] || 0) === 0 ? 0 : port('SLUICE_HEALTH_PORT', 0, 65_536 - APPS.length),
    kafkaPort: port('SLUICE_KAFKA_PORT', 9092),
    postgresPort: port('SLUICE_POSTGRES_PORT', 5433),
    kafkaBrokers: optional('KAFKA_BROKERS', isBrokerList, 'a list such as kafka-1:9092,kafka-2:9092'),
    databaseUrl: optional('DATABASE_URL', isPostgresUrl, 'an address such as postgres://user:password@host:5432/postgres', true),
    apiKey: optional('SLUICE_API_KEY', isApiKey, '8 to 128 visible ASCII characters', true),
    allowPrivateHosts: env['SLUICE_ALLOW_PRIVATE_HOSTS'] ?? LOOPBACK,
    protectedHosts: env['SLUICE_PROTECTED_HOSTS'] ?? '',
    graceMs: milliseconds(shutdownTimeout) + ENDS_WITHIN_MS,
    startupTimeout: env['SLUICE_STARTUP_TIMEOUT'] || (env['KAFKA_BROKERS'] && env['DATABASE_URL'] ? '' : OWN_STORES_TIMEOUT),
  };
  for (const name of ['DATABASE_PASSWORD', 'DATABASE_PASSWORD_FILE'])
    if (env[name] && !env['DATABASE_URL'])
      problems.push(`${name} is set, but DATABASE_URL is not: set both for an existing server, or neither for the embedded one.`);
  problems.push(...portsGivenTwice(settings));
  if (problems.length > 0) throw new ExplainedError(problems.join('\n'));
  return settings;
}

/**
 * A secret may be in a file, named by the variable with the suffix `_FILE`.
 * @param {Record<string, string | undefined>} env
 * @param {string[]} problems
 */
function withSecretsFromFiles(env, problems) {
  const all = { ...env };
  for (const name of ['DATABASE_URL', 'SLUICE_API_KEY']) {
    const file = env[`${name}_FILE`];
    if (!file) continue;
    try {
      all[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      problems.push(`${name}_FILE cannot be read: ${/** @type {Error} */ (error).message}.`);
    }
  }
  return all;
}

/** @param {Record<string, string | undefined>} env */
export const dataFolderPath = (env) => resolve(ROOT, env['SLUICE_DATA_DIR'] || '.sluice');

/**
 * The ports that must be free, each with the variable that sets it.
 * @param {Settings} settings
 */
export const portsInUse = (settings) => [
  { variable: 'SLUICE_HTTP_PORT', port: settings.httpPort },
  { variable: 'SLUICE_ENDPOINTS_PORT', port: settings.endpointsPort },
  ...[...healthPorts(settings).values()].map((port) => ({ variable: 'SLUICE_HEALTH_PORT', port })),
  ...(settings.kafkaBrokers ? [] : [{ variable: 'SLUICE_KAFKA_PORT', port: settings.kafkaPort }]),
  ...(settings.databaseUrl ? [] : [{ variable: 'SLUICE_POSTGRES_PORT', port: settings.postgresPort }]),
];

/**
 * The port of each app for its health and metrics, because the apps share the machine.
 * @param {Pick<Settings, 'healthPort'>} settings
 * @returns {Map<import('../processes/apps.mjs').App, number>} empty if there is none
 */
export const healthPorts = ({ healthPort }) => new Map(healthPort === 0 ? [] : APPS.map((app, index) => [app, healthPort + index]));

/**
 * The URL of the REST API, for programs on this machine.
 * @param {Pick<Settings, 'httpHost' | 'httpPort'>} settings
 */
export function apiUrl({ httpHost, httpPort }) {
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[httpHost] ?? httpHost;
  return `http://${inUrl(reached)}:${httpPort}`;
}

/**
 * The URL of a server that listens on an address, for users of this machine: `localhost`, unless the server does not listen there.
 * @param {string} host
 * @param {number} port
 */
export const localUrl = (host, port) => `http://${['127.0.0.1', '0.0.0.0', '::'].includes(host) ? 'localhost' : inUrl(host)}:${port}`;

/** @param {string} host */
const inUrl = (host) => (host.includes(':') ? `[${host}]` : host);

/**
 * The brokers for producers and consumers outside Sluice.
 * @param {Pick<Settings, 'kafkaBrokers' | 'kafkaPort'>} settings
 */
export const publicBrokers = ({ kafkaBrokers, kafkaPort }) => kafkaBrokers ?? `localhost:${kafkaPort}`;

/** @param {Settings} settings */
function portsGivenTwice(settings) {
  const used = portsInUse(settings);
  return used.flatMap(({ variable, port }, index) => {
    const earlier = used.slice(0, index).find((other) => other.port === port);
    return earlier ? [`${variable} and ${earlier.variable} must not be the same port, ${port}.`] : [];
  });
}

/** @param {string} text such as 500ms, 5s or 30m @returns {number} NaN if it is not a duration */
function milliseconds(text) {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Math.round(Number(number) * (UNITS[unit] ?? NaN));
}

/** @param {string} text */
const isBrokerList = (text) =>
  text.split(',').every((broker) => {
    const port = Number(/^[\w.-]+:(\d+)$/.exec(broker.trim())?.[1]);
    return port >= 1 && port <= 65_535;
  });

/** @param {string} text */
function isPostgresUrl(text) {
  try {
    const { protocol, hostname } = new URL(text);
    return ['postgres:', 'postgresql:'].includes(protocol) && hostname !== '';
  } catch {
    return false;
  }
}
