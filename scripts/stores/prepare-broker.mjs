// Runs in a separate process: waits until a broker can be used, and sets what clients need there.
import { setTimeout as sleep } from 'node:timers/promises';
import { respondToCaller } from '../processes/own-process.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { OFFSETS_SEGMENT_BYTES } from './broker-properties.mjs';
import { isKafkaReady, limitOffsetsTopic, storesGroups } from './kafka-ready.mjs';
import { grantPublicTopics } from './public-topics.mjs';

// After kill -9, a broker waits for its old registration to expire (5 to 9 s) and reads its logs again, which may take minutes on a slow disk.
// If it was ended meanwhile, it would begin again.
const RECOVERY_MS = 600_000;
/** Otherwise the broker is started again, which helps. */
const GROUPS_MS = 90_000;

/**
 * @typedef {object} Broker
 * @property {string} brokers "host:port"
 * @property {string} logFile
 * @property {import('./broker.mjs').BrokerSecurity['client']} [client]
 * @property {boolean} mayFailGroups see {@link storesGroups}
 * @property {import('./broker.mjs').BrokerSecurity['client']} [services] the login that grants the public topics to clients without one; default: they get no topic
 */

// returns false if the broker does not know the login of the services
respondToCaller(async (/** @type {Broker} */ { services, ...broker }) => {
  await untilServes(broker);
  if (services && !(await grantPublicTopics(broker.brokers, services))) return false;
  await limitOffsetsTopic(broker.brokers, OFFSETS_SEGMENT_BYTES, broker.client);
  return true;
});

/**
 * Resolves when the broker responds and consumer groups work, which is some time after its port opens.
 * @param {Broker} broker
 */
async function untilServes({ brokers, logFile, client, mayFailGroups }) {
  await until(
    () => isKafkaReady(brokers, client),
    RECOVERY_MS,
    `The broker does not respond after ${RECOVERY_MS / 1000} s; its log is ${logFile}.`,
  );
  if (!mayFailGroups) return;
  const failure = `Consumers cannot join groups after ${GROUPS_MS / 1000} s; the log of the broker is ${logFile}.`;
  await until(() => storesGroups(brokers, client), GROUPS_MS, failure);
}

/**
 * @param {() => Promise<boolean>} condition
 * @param {number} withinMs
 * @param {string} failure
 */
async function until(condition, withinMs, failure) {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new ExplainedError(failure);
    await sleep(100);
  }
}
