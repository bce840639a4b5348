// Brings databases and topics to the shape that the apps of this version need. Harmless to repeat, and by several at once.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { topicSpecs } from '../dist/libs/contracts/src/index.js';
import { readConfig } from '../dist/libs/config/src/index.js';
import { ensureDatabase, migrate } from '../dist/libs/database/src/index.js';
import { createKafka, createTopics, readKafkaConfig } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';

const log = createLog('migrate');
const apps = new URL('../apps/', import.meta.url);

const config = readConfig((env) => ({
  kafka: readKafkaConfig(env),
  databaseUrl: env.text('DATABASE_URL'),
  partitions: env.integer('SLUICE_PARTITIONS', 4, { min: 1, max: 1000 }),
  replicas: env.integer('SLUICE_REPLICATION_FACTOR', 1, { min: 1, max: 10 }),
}));

async function migrateApp(app) {
  const database = app.replaceAll('-', '_');
  await ensureDatabase(config.databaseUrl, database);
  const applied = await migrate(config.databaseUrl, database, fileURLToPath(new URL(`${app}/src/database/migrations`, apps)));
  if (applied.length > 0) log.info({ database, applied }, 'database.migrated');
}

try {
  await Promise.all([
    ...readdirSync(apps).map(migrateApp),
    createTopics(createKafka(config.kafka, 'migrate', log), topicSpecs(), config).then((topics) => {
      if (topics.length > 0) log.info({ topics: topics.length, partitions: config.partitions }, 'topics.created');
    }),
  ]);
} catch (error) {
  log.fatal({ err: error }, 'migration failed');
  process.exitCode = 1;
}
