import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';
import { brokerData, hasStorage } from '../stores/broker.mjs';
import { hasCluster, postgresData, postgresPasswordFile } from '../stores/postgres.mjs';

/**
 * Checks the files without which the data of earlier starts cannot be used: a new password or key would not fit it.
 *
 * @param {import('./data-folder.mjs').DataFolder} folder
 * @param {{ databaseUrl?: string | undefined, kafkaBrokers?: string | undefined }} settings
 * @param {Record<string, string | undefined>} env
 */
export async function checkKeptFiles(folder, { databaseUrl, kafkaBrokers }, env) {
  const hasOwnKey = Boolean(env.SLUICE_SECRETS_KEY || env.SLUICE_SECRETS_KEY_FILE);
  const problems = [
    databaseUrl ? undefined : databaseProblem(folder),
    databaseUrl ? undefined : passwordProblem(folder),
    kafkaBrokers ? undefined : brokerProblem(folder),
    hasOwnKey ? undefined : await secretsKeyProblem(folder),
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new ExplainedError(problems.join('\n'));
}

/** @param {import('./data-folder.mjs').DataFolder} folder */
const hasDatabase = ({ postgres }) => hasCluster(postgres);

/** @param {import('./data-folder.mjs').DataFolder} folder */
function databaseProblem(folder) {
  const data = postgresData(folder.postgres);
  if (hasDatabase(folder) || !existsSync(data) || readdirSync(data).length === 0) return undefined;
  return `${join(data, 'PG_VERSION')} is missing, although ${data} has other files: restore the folder from a backup, or ${startAnew(folder)}.`;
}

/**
 * A broker with a new cluster id cannot read the partitions of an earlier one. If the preparation of the first one was interrupted, there are no partitions yet.
 * @param {import('./data-folder.mjs').DataFolder} folder
 */
function brokerProblem(folder) {
  const data = brokerData(folder.broker);
  if (hasStorage(folder.broker) || !existsSync(data)) return undefined;
  const partition = readdirSync(data).find((name) => /-\d+$/.test(name));
  if (partition === undefined) return undefined;
  return `${join(data, 'meta.properties')} is missing, although ${data} has partitions, such as ${partition}: restore it from a backup, or ${startAnew(folder)}.`;
}

/** @param {import('./data-folder.mjs').DataFolder} folder */
function passwordProblem(folder) {
  const file = postgresPasswordFile(folder.postgres);
  if (!hasDatabase(folder) || textOf(file)) return undefined;
  return `${file} ${isWhat(file)}. It contains the password of the database: restore it from a backup, or ${startAnew(folder)}.`;
}

/** @param {import('./data-folder.mjs').DataFolder} folder */
async function secretsKeyProblem(folder) {
  const file = folder.secretsKey;
  if (!existsSync(file) && !existsSync(folder.apiKey) && !hasDatabase(folder)) return undefined;
  const problem = textOf(file) ? await keyProblem(file) : isWhat(file);
  if (problem === undefined) return undefined;
  return `${file} ${problem}. It contains the key that encrypts secrets: restore it from a backup, set SLUICE_SECRETS_KEY to the key, or ${startAnew(folder)}.`;
}

/** @param {string} file */
async function keyProblem(file) {
  const { SecretsConfig } = await import('#secrets');
  try {
    SecretsConfig.read({ SLUICE_SECRETS_KEY_FILE: file });
    return undefined;
  } catch {
    return 'does not contain a key';
  }
}

/** @param {import('./data-folder.mjs').DataFolder} folder */
const startAnew = ({ dir }) => `move ${dir} away to start with an empty one`;

/** @param {string} file */
const isWhat = (file) => (existsSync(file) ? 'is empty' : 'is missing');

/** @param {string} file */
const textOf = (file) => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '');
