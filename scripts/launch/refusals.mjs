import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { appEnvironment } from '../processes/apps.mjs';
import { node24 } from '../setup/node24.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { removeAtEnd } from '../shell/keeper.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { whyNotListen } from '../shell/ports.mjs';
import { run } from '../shell/run.mjs';
import { newSecretsKey } from '../shell/secrets-key.mjs';
import { portsInUse } from './settings.mjs';

/** @typedef {import('./settings.mjs').Settings} Settings */

/** @param {Settings} settings */
export async function checkPorts(settings) {
  const problems = await Promise.all(
    portsInUse(settings).map(async ({ port, variable }) => {
      const why = await whyNotListen(port);
      if (why === null) return [];
      const trouble = why === 'EACCES' ? 'may not be used by this user' : 'is taken by another program';
      return [`Port ${port} ${trouble}: set another one in ${variable}.`];
    }),
  );
  if (problems.flat().length > 0) throw new ExplainedError(problems.flat().join('\n'));
}

/**
 * Checks the variables of the services, the first API key and the jail of components, as the services do.
 * @param {Settings} settings
 */
export async function checkServices(settings) {
  // the jail's root is built there, if it is not there yet
  const folder = existsSync(settings.dataDir) ? null : folderForCheck(settings.dataDir);
  const given = process.env;
  const hasSecretsKey = given.SLUICE_SECRETS_KEY || given.SLUICE_SECRETS_KEY_FILE;
  try {
    const { code, output } = await run(node24(), [inRoot('scripts', 'check-services.mjs')], {
      cwd: ROOT,
      env: {
        ...appEnvironment({
          ...{ SLUICE_DATA_DIR: folder ?? settings.dataDir, SLUICE_ALLOW_PRIVATE_HOSTS: settings.allowPrivateHosts },
          // stand for what the start chooses
          ...(!settings.kafkaBrokers && { ...EMBEDDED_KAFKA }),
          ...(!settings.databaseUrl && { DATABASE_URL: 'postgres://postgres@127.0.0.1/postgres' }),
          ...(!hasSecretsKey && { SLUICE_SECRETS_KEY: newSecretsKey() }),
        }),
        SLUICE_API_KEY: settings.apiKey,
      },
    });
    if (code !== 0) throw new ExplainedError(output.trimEnd());
  } finally {
    if (folder) rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Creates a temporary folder that stands for a data folder that does not exist yet. It is on the same file system: another one may forbid the execution of programs, or
 * be full.
 * @param {string} dataDir
 */
export function folderForCheck(dataDir) {
  let parent = dirname(dataDir);
  while (!existsSync(parent)) parent = dirname(parent);
  try {
    const folder = mkdtempSync(join(parent, '.sluice-check-'));
    removeAtEnd(folder);
    // the jail's user must reach it
    chmodSync(folder, 0o711);
    return folder;
  } catch (error) {
    throw new ExplainedError(`The data folder ${dataDir} cannot be created: ${/** @type {Error} */ (error).message}.`);
  }
}

const EMBEDDED_KAFKA = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  KAFKA_SECURITY_PROTOCOL: 'sasl_plaintext',
  KAFKA_SASL_MECHANISM: 'scram-sha-512',
  KAFKA_SASL_USERNAME: 'sluice',
  KAFKA_SASL_PASSWORD: 'sluice',
  KAFKA_SASL_PASSWORD_FILE: '',
};
