// sluice secrets rotate: encrypts all secrets in the databases under the first key of SLUICE_SECRETS_KEY. It can be repeated, and run while the services
// run, once all of them have the new list of keys. On failure, it prints one line on standard error and exits with code 1.
import { checkConfig } from '../dist/libs/config/src/index.js';
import { SERVICES } from '../dist/libs/contracts/src/index.js';
import { Database, DatabaseConfig, rotateSealed } from '../dist/libs/database/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { SecretsConfig } from '../dist/libs/secrets/src/index.js';
import { reportFailure } from '../dist/libs/service/src/index.js';
import { refuseArguments } from './shell/wrong-usage.mjs';

refuseArguments('secrets rotate');

const log = createLog('secrets');

try {
  checkConfig([DatabaseConfig, SecretsConfig]);
  const config = DatabaseConfig.read();
  const { box } = SecretsConfig.read();
  let total = 0;
  for (const service of SERVICES) {
    const { schema } = await import(`../dist/apps/${service}/src/database/schema.js`);
    const connection = { serverUrl: config.serverUrl, name: config.nameOf(service), max: 2, log };
    const values = await rotateSealed(schema, connection, box);
    total += values;
    if (values > 0) log.info({ database: connection.name, values }, 'secrets.rotated');
    if (service === 'catalog') await republish(service, schema, connection);
  }
  log.info({ values: total }, 'rotation.completed');
} catch (error) {
  reportFailure(error);
}

/**
 * The catalog's relay sends the facts: they replace those that are encrypted under an older key.
 * @param {string} service
 * @param {any} schema
 * @param {any} connection
 */
async function republish(service, schema, connection) {
  const { SourcesRepository } = await import(`../dist/apps/${service}/src/sources/sources.repository.js`);
  const database = await Database.of(schema, connection).open();
  try {
    const republished = await SourcesRepository.of(database).republish();
    if (republished > 0) log.info({ sources: republished }, 'sources.republished');
  } finally {
    await database.close();
  }
}
