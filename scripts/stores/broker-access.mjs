import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { kafkaCommand } from '../setup/kafka.mjs';
import { hasStorage } from './broker.mjs';
import { BROKER_USER, keptPort, loginProperties } from './broker-properties.mjs';
import { writeSecret } from '../shell/secret-file.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { run } from '../shell/run.mjs';

/** The user that the services log in as. */
const SERVICES_USER = 'sluice';

/**
 * The permissions on the broker of `npm start`:
 *
 *     PLAINTEXT    clients outside, without a login: write and read the public topics, nothing else
 *     SERVICES     the services: SCRAM, all permissions
 *     CONTROLLER   the broker itself
 *
 * @typedef {object} BrokerAccess
 * @property {number} controllerPort
 * @property {number[]} ports of the internal listeners
 * @property {boolean} isKept whether the broker of this folder has accepted the login before
 * @property {import('./broker.mjs').BrokerSecurity} security
 * @property {Record<string, string>} environment the variables with which a service connects and logs in
 */

/**
 * Ports and passwords are chosen once per data folder, and kept.
 * @param {string} dir of the broker
 * @param {number} port for clients outside
 * @returns {Promise<BrokerAccess>}
 */
export async function brokerAccess(dir, port) {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const passwordFile = join(dir, 'password');
  const keptPassword = readIfThere(passwordFile);
  const password = keptPassword || randomBytes(24).toString('hex');
  const acceptedFile = join(dir, 'password.accepted');
  const digest = createHash('sha256').update(password).digest('hex');
  if (!keptPassword) writeSecret(passwordFile, password);
  // of the broker itself: for this process only
  const ownPassword = randomBytes(24).toString('hex');
  const config = join(dir, 'server.properties');
  const controllerPort = await keptPort(config, 'CONTROLLER', [port]);
  const servicesPort = await keptPort(config, 'SERVICES', [port, controllerPort]);
  const bootstrap = `127.0.0.1:${servicesPort}`;

  /** @type {import('./broker.mjs').BrokerSecurity['client']} */
  const services = { sasl: { mechanism: 'scram-sha-512', username: SERVICES_USER, password } };
  return {
    controllerPort,
    ports: [servicesPort, controllerPort],
    isKept: hasStorage(dir) && readIfThere(acceptedFile) === digest,
    environment: {
      KAFKA_BROKERS: bootstrap,
      KAFKA_SECURITY_PROTOCOL: 'sasl_plaintext',
      KAFKA_SASL_MECHANISM: 'scram-sha-512',
      KAFKA_SASL_USERNAME: SERVICES_USER,
      KAFKA_SASL_PASSWORD_FILE: passwordFile,
    },
    security: {
      // Not created with the storage: the passwords would be in the arguments of a program, where every user of this machine can read them
      users: {},
      bootstrap,
      client: { sasl: { mechanism: 'plain', username: BROKER_USER, password: ownPassword } },
      properties: () => accessProperties({ port, servicesPort, controllerPort, password: ownPassword }),
      services: {
        login: services,
        passwordFile,
        setPassword: () => setPassword(dir, bootstrap, ownPassword, password),
        accepted: () => {
          if (readIfThere(acceptedFile) !== digest) writeSecret(acceptedFile, digest);
        },
      },
    },
  };
}

/** @param {string} file */
const readIfThere = (file) => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '');

/** @param {{ port: number, servicesPort: number, controllerPort: number, password: string }} options */
function accessProperties({ port, servicesPort, controllerPort, password }) {
  return `
# Who may do what: scripts/stores/broker-access.mjs
listeners=PLAINTEXT://127.0.0.1:${port},SERVICES://127.0.0.1:${servicesPort},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=PLAINTEXT://127.0.0.1:${port},SERVICES://127.0.0.1:${servicesPort}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SERVICES:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
${loginProperties({ brokerListener: 'SERVICES', clientListener: 'SERVICES', superUser: SERVICES_USER, password })}`;
}

/**
 * With Kafka's own tool, because kafkajs lacks this request. It takes a second, once per data folder.
 * @param {string} dir
 * @param {string} brokers
 * @param {string} ownPassword
 * @param {string} password
 */
async function setPassword(dir, brokers, ownPassword, password) {
  const login = join(dir, 'login.properties');
  writeSecret(
    login,
    `security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="${BROKER_USER}" password="${ownPassword}";`,
  );
  const change = join(dir, 'password.properties');
  writeSecret(change, `SCRAM-SHA-512=password=${password}`);
  const { command, args, options } = await kafkaCommand(
    dir,
    ['-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'],
    [
      ...['kafka.admin.ConfigCommand', '--bootstrap-server', brokers, '--command-config', login],
      ...['--alter', '--entity-type', 'users', '--entity-name', SERVICES_USER, '--add-config-file', change],
    ],
  );
  const { code, output } = await run(command, args, options);
  await Promise.all([login, change].map((file) => rm(file, { force: true })));
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe password of the broker could not be set, see above.`);
}
