import { createSocket } from 'node:dgram';
import { createServer } from 'node:http';
import { ExplainedError } from '../shell/explained-error.mjs';
import { loadKafkajs } from '../stores/kafka-ready.mjs';
import { kafkaLogin } from './kafka-login.mjs';
import { isOwnAddress } from '../shell/ports.mjs';
import { run } from '../shell/run.mjs';

const PATIENCE_MS = 15_000;
const NOT_CONTROLLED = 'needs control of the containers or pods; run it with npm test, test:compose or test:k8s';

/**
 * How to reach an instance of Sluice.
 *
 * @typedef {object} Instance
 * @property {string} url
 * @property {string} key
 * @property {string} kafka
 * @property {string} endpoints
 * @property {string} [receiverHost]
 * @property {string} [cli]
 * @property {string} [topicPrefix]
 * @property {Record<string, string>} [kafkaVariables] TLS and login of clients outside, as the services' configuration names them
 */

/**
 * Checks that all parts of an instance that the stories need respond. Fails with one line that names the wrong argument.
 *
 * @param {Instance} instance
 * @returns the value of `SLUICE_E2E_TARGET`, see test/support/target.ts
 */
export async function describeInstance({ url, key, kafka, endpoints, receiverHost, cli, topicPrefix = '', kafkaVariables = {} }) {
  const apiUrl = httpUrl(url, '--url');
  if (!apiUrl.endsWith('/v1') || new URL(apiUrl).pathname !== '/v1')
    throw new ExplainedError(`--url must be the URL of the REST API, like http://localhost:3000/v1, not ${url}.`);
  const endpointsUrl = httpUrl(endpoints, '--endpoints');
  const account = await checkApi(apiUrl, key);
  await checkKafka(kafka, `${topicPrefix}events`, await kafkaLogin(kafkaVariables));
  await get(endpointsUrl, {}, `The endpoints of sources do not respond at ${endpointsUrl} (--endpoints)`);
  if (cli) await checkCli(cli, account);
  const receiver = await findReceiver(apiUrl, key, receiverHost);
  return {
    kind: 'running',
    ...{ apiUrl, endpointsUrl, brokers: kafka, apiKey: key, cli, receiverHost: receiver.host, topicPrefix, kafkaVariables },
    lacks: {
      ...(cli ? {} : { accounts: "needs separate accounts, which the operator's CLI creates (--cli)" }),
      ...(receiver.problem ? { receiver: `needs an instance that reaches this machine (--receiver-host): ${receiver.problem}` } : {}),
      ...Object.fromEntries(['control', 'pause', 'scale', 'broker', 'variables', 'logs'].map((capability) => [capability, NOT_CONTROLLED])),
      processes: 'starts stores and apps itself; run it with npm test',
    },
  };
}

/**
 * @param {string} text
 * @param {string} argument
 */
function httpUrl(text, argument) {
  if (!/^https?:\/\/[^/]/.test(text) || !URL.canParse(text))
    throw new ExplainedError(`${argument} must be an http or https URL, not ${text}.`);
  return text.replace(/\/+$/, '');
}

/**
 * @param {string} apiUrl
 * @param {string} key
 * @returns {Promise<string>} the id of the key's account
 */
async function checkApi(apiUrl, key) {
  const path = `${apiUrl}/users/me`;
  const response = await get(path, { authorization: `Bearer ${key}` }, `The instance does not respond at ${apiUrl} (--url)`);
  if (response.status === 401) throw new ExplainedError(`The instance at ${apiUrl} does not accept the key (--key).`);
  const body = /** @type {any} */ (await response.json().catch(() => null));
  if (response.status !== 200 || !body?.data?.id)
    throw new ExplainedError(`${path} returned ${response.status}, which the REST API of Sluice does not (--url).`);
  if (response.headers.has('ratelimit-limit'))
    throw new ExplainedError(
      'The instance limits the requests of an account, and the stories send many: run it without SLUICE_REQUESTS_PER_MINUTE.',
    );
  return body.data.id;
}

/**
 * @param {string} brokers
 * @param {string} topic
 * @param {Pick<import('kafkajs').KafkaConfig, 'ssl' | 'sasl'>} login
 */
async function checkKafka(brokers, topic, login) {
  const kafkajs = await loadKafkajs();
  const kafka = new kafkajs.Kafka({
    ...login,
    clientId: 'sluice-test',
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 5000,
    retry: { retries: 0 },
  });
  const admin = kafka.admin();
  /** @type {string[]} */
  let topics;
  try {
    await admin.connect();
    topics = await admin.listTopics();
  } catch (error) {
    throw new ExplainedError(`Kafka does not respond at ${brokers} (--kafka): ${/** @type {Error} */ (error).message}`);
  } finally {
    await admin.disconnect().catch(() => {});
  }
  if (!topics.includes(topic))
    throw new ExplainedError(`Kafka at ${brokers} has no topic ${topic}, so it does not belong to this instance (--kafka).`);
}

/**
 * @param {string} cli
 * @param {string} account
 */
async function checkCli(cli, account) {
  const { code, stdout, output } = await run('/bin/sh', ['-c', `${cli} account list --json`]);
  if (code !== 0) throw new ExplainedError(`"${cli} account list" fails (--cli): ${output.trim().split('\n').at(-1)}`);
  if (!stdout.includes(`"${account}"`))
    throw new ExplainedError(
      `"${cli} account list" does not list ${account}, the account of the key, so it manages another instance (--cli).`,
    );
}

/**
 * Makes the instance fetch a file from this machine.
 *
 * @param {string} apiUrl
 * @param {string} key
 * @param {string | undefined} wanted
 * @returns {Promise<{ host: string, problem?: string }>}
 */
async function findReceiver(apiUrl, key, wanted) {
  const host = wanted ?? (await addressTowards(new URL(apiUrl).hostname));
  const server = createServer((_, response) => response.end("export default { name: 'Reachable' }"));
  const address = (await isOwnAddress(host)) ? host : '0.0.0.0';
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, () => resolve(undefined));
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  try {
    const response = await fetch(`${apiUrl}/components`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ component_url: `${url}/reachable.mjs` }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (response.status === 200) return { host };
    const { error } = /** @type {any} */ (await response.json());
    throw new Error(error);
  } catch (error) {
    const problem = /** @type {Error} */ (error).message.replaceAll(url, host);
    if (wanted)
      throw new ExplainedError(
        `The instance does not reach ${wanted} (--receiver-host; does its SLUICE_ALLOW_PRIVATE_HOSTS list it?): ${problem}`,
      );
    return { host, problem };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/**
 * The address from which this machine connects to a host.
 * @param {string} host
 * @returns {Promise<string>}
 */
export function addressTowards(host) {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    const done = (/** @type {string} */ address) => {
      socket.close();
      resolve(address);
    };
    socket.once('error', () => done('127.0.0.1'));
    // sends nothing: it only selects the route
    socket.connect(9, host.replace(/^\[|\]$/g, ''), () => done(socket.address().address));
  });
}

/**
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {string} trouble
 */
async function get(url, headers, trouble) {
  try {
    return await fetch(url, { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch (error) {
    const { message, cause } = /** @type {Error} */ (error);
    throw new ExplainedError(`${trouble}: ${cause instanceof Error ? (/** @type {any} */ (cause).code ?? cause.message) : message}`);
  }
}
