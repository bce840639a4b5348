import { join } from 'node:path';
import { inRoot } from '../shell/paths.mjs';
import { loadKafkajs } from './kafka-ready.mjs';

/**
 * Lets clients that do not log in use the public topics. Idempotent.
 * @param {string} brokers
 * @param {import('./broker.mjs').BrokerSecurity['client']} client
 * @returns {Promise<boolean>} false: the broker does not know this login
 */
export async function grantPublicTopics(brokers, client) {
  const { Kafka, logLevel } = await loadKafkajs();
  const admin = new Kafka({
    ...client,
    brokers: [brokers],
    clientId: 'sluice-start',
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  }).admin();
  try {
    await admin.connect();
    await admin.createAcls({ acl: await publicAcls() });
    return true;
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'KafkaJSSASLAuthenticationError') return false;
    throw error;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

/** The permissions of clients that do not log in. */
async function publicAcls() {
  const { AclOperationTypes: may, AclPermissionTypes, AclResourceTypes: kind, ResourcePatternTypes: pattern } = await loadKafkajs();
  // not all contracts, which would also load the packages that validate them
  const contracts = inRoot('dist', 'libs', 'contracts', 'src');
  const [{ SERVICES }, names] = await Promise.all([import(join(contracts, 'contract.js')), import(join(contracts, 'topic-names.js'))]);
  const { EVENTS_TOPIC, WORKFLOWS_TOPIC, WORKFLOW_TRIGGERS_TOPIC, groupPrefix } = names;
  const { ALLOW, DENY } = AclPermissionTypes;
  /** @typedef {[resource: number, name: string, pattern: number, permission: number, operations: number[]]} Rule */
  /** @type {Rule[]} */
  const rules = [
    [kind.TOPIC, EVENTS_TOPIC, pattern.LITERAL, ALLOW, [may.READ, may.WRITE, may.DESCRIBE, may.DESCRIBE_CONFIGS]],
    [kind.TOPIC, WORKFLOWS_TOPIC, pattern.LITERAL, ALLOW, [may.READ, may.WRITE, may.DESCRIBE, may.DESCRIBE_CONFIGS]],
    [kind.TOPIC, WORKFLOW_TRIGGERS_TOPIC, pattern.LITERAL, ALLOW, [may.READ, may.DESCRIBE, may.DESCRIBE_CONFIGS]],
    [kind.TRANSACTIONAL_ID, '*', pattern.LITERAL, ALLOW, [may.WRITE, may.DESCRIBE]],
    [kind.GROUP, '*', pattern.LITERAL, ALLOW, [may.READ, may.DESCRIBE, may.DELETE]],
    // An outsider that commits an offset in a service's group could make it skip events
    ...SERVICES.map(
      (/** @type {string} */ service) => /** @type {Rule} */ ([kind.GROUP, groupPrefix(service), pattern.PREFIXED, DENY, [may.ALL]]),
    ),
  ];
  return rules.flatMap(([resourceType, resourceName, resourcePatternType, permissionType, operations]) =>
    operations.map((operation) => ({
      ...{ resourceType, resourceName, resourcePatternType, permissionType, operation },
      ...{ principal: 'User:ANONYMOUS', host: '*' },
    })),
  );
}
