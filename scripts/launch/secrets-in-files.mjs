import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { writeSecret } from '../shell/secret-file.mjs';

/** The secret variables of the services; scripts/launch/secrets-in-files.spec.mjs compares them with the declared ones. */
export const SECRET_VARIABLES = [
  'DATABASE_URL',
  'DATABASE_PASSWORD',
  'KAFKA_SASL_PASSWORD',
  'KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET',
  'KAFKA_SSL_KEY_PASSWORD',
  'SLUICE_SMTP_URL',
  'SLUICE_SECRETS_KEY',
];

/**
 * Moves secrets from variables into files, for the processes that are started next: every process of the same user can read their environment, also code that
 * has broken out of a jail. Removes the files of variables that are not set, so that no backup contains them.
 *
 * @param {Record<string, string | undefined>} env
 * @param {string} folder
 * @returns {Record<string, string>} the variables that replace them
 */
export function secretsInFiles(env, folder) {
  const given = SECRET_VARIABLES.filter((name) => env[name]);
  for (const name of SECRET_VARIABLES) {
    const file = join(folder, name);
    if (!env[name] && resolve(env[`${name}_FILE`] ?? '') !== file) rmSync(file, { force: true });
  }
  if (given.length > 0) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return Object.assign(
    {},
    ...given.map((name) => {
      const file = join(folder, name);
      writeSecret(file, env[name] ?? '');
      return { [name]: '', [`${name}_FILE`]: file };
    }),
  );
}
