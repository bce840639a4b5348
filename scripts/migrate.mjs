// sluice migrate: brings databases and topics to this version. It can be repeated, and run several times at once. On failure, it prints one line and exits with code 1.
import { checkConfig } from '../dist/libs/config/src/index.js';
import { SERVICES, topicSpecs } from '../dist/libs/contracts/src/index.js';
import { DatabaseConfig, ensureDatabase, migrate, newerSchemas, schemaState } from '../dist/libs/database/src/index.js';
import {
  checkTopics,
  createTopics,
  explainKafkaError,
  KafkaClient,
  KafkaConfig,
  limitTopics,
  TopicsConfig,
  wrongTopics,
} from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { CannotStart, logFatal, ServiceConfig, retryUntilStoresRespond } from '../dist/libs/service/src/index.js';
import { refuseArguments } from './shell/wrong-usage.mjs';

refuseArguments('migrate');

const log = createLog('migrate');

try {
  checkConfig([ServiceConfig, DatabaseConfig, KafkaConfig, TopicsConfig]);
  const database = DatabaseConfig.read();
  const kafka = new KafkaClient(KafkaConfig.read(), 'migrate', createLog('migrate', 'silent'), { retries: 0 });
  const topics = TopicsConfig.read();
  const states = await retryUntilStoresRespond(log, () => readStates(database));
  const existing = await retryUntilStoresRespond(log, () => checkTopics(kafka, topicSpecs(), topics));
  // check everything before changing anything
  if (existing.wrong.length > 0) throw new CannotStart(wrongTopics(existing.wrong));
  const newer = newerSchemas(states);
  // after a return to the previous version, whose services work on this schema
  for (const { name, unknown } of newer) log.warn({ database: name, unknown }, 'database.schema-newer');
  const migrations = newer.length === 0 ? await migrateAll({ database, kafka, topics, states }) : 0;
  // also for the previous version: its services wait for topics that Kafka has lost
  const created = await createTopics(kafka, topicSpecs(), topics);
  if (created.length > 0) log.info({ topics: created.length, partitions: topics.partitions, replicas: topics.replicas }, 'topics.created');
  log.info({ migrations, topics: created.length }, 'migration.completed');
} catch (error) {
  logFatal(log, error, 'migration.failed');
  process.exitCode = 1;
}

/**
 * @param {object} options
 * @param {DatabaseConfig} options.database
 * @param {KafkaClient} options.kafka
 * @param {TopicsConfig} options.topics
 * @param {Awaited<ReturnType<typeof readStates>>} options.states
 * @returns how many migrations were applied
 */
async function migrateAll({ database, kafka, topics, states }) {
  const limited = await limitTopics(kafka, topicSpecs()).catch(reportDenial);
  if (limited.length > 0) log.info({ topics: limited }, 'topics.limited');
  for (const difference of (await checkTopics(kafka, topicSpecs(), topics)).different) log.warn(difference);
  let migrations = 0;
  for (const { name, schema } of states) {
    await ensureDatabase(database.serverUrl, name);
    const applied = await migrate(database.serverUrl, name, schema, log);
    migrations += applied.length;
    if (applied.length > 0) log.info({ database: name, migrations: applied.length, newest: applied.at(-1) }, 'database.migrated');
  }
  return migrations;
}

/**
 * The permission to change topics is newer than others, and the services work without the change.
 *
 * @param {unknown} error
 * @returns {string[]}
 */
function reportDenial(error) {
  const reason = explainKafkaError(error);
  if (reason === undefined) throw error;
  log.warn({ reason }, 'topics.not-limited');
  return [];
}

/** @param {DatabaseConfig} database */
function readStates(database) {
  return Promise.all(
    SERVICES.map(async (service) => {
      const { schema } = await import(`../dist/apps/${service}/src/database/schema.js`);
      const name = database.nameOf(service);
      return { name, schema, ...(await schemaState(database.serverUrl, name, schema)) };
    }),
  );
}
