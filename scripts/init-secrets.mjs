// sluice secrets init DIR: writes the password of PostgreSQL, the API key of the first account and the key that encrypts secrets to files that only this user and its group can read.
// POSTGRES_PASSWORD, SLUICE_API_KEY and SLUICE_SECRETS_KEY set the values; otherwise they are random, and generated only once. No value is ever printed.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMistypedKey, MISTYPED, newApiKey } from '../dist/apps/gateway/src/accounts/api-key.js';
import { SecretsConfig } from '../dist/libs/secrets/src/index.js';
import { keepSecret } from './shell/secret-file.mjs';
import { newSecretsKey } from './shell/secrets-key.mjs';

const SECRETS = [
  { name: 'postgres-password', variable: 'POSTGRES_PASSWORD', generate: () => randomBytes(24).toString('base64url') },
  { name: 'api-key', variable: 'SLUICE_API_KEY', generate: newApiKey },
  { name: 'secrets-key', variable: 'SLUICE_SECRETS_KEY', generate: newSecretsKey },
];

const [dir, ...others] = process.argv.slice(2);
if (!dir || others.length > 0) {
  console.error('Usage: sluice secrets init DIR');
  process.exit(2);
}
try {
  if (process.env.SLUICE_API_KEY && isMistypedKey(process.env.SLUICE_API_KEY)) throw new Error(`SLUICE_API_KEY ${MISTYPED}`);
  mkdirSync(dir, { recursive: true, mode: 0o750 });
  if (process.env.SLUICE_SECRETS_KEY) checkSecretsKey(join(dir, 'secrets-key'), process.env.SLUICE_SECRETS_KEY);
  for (const { name, variable, generate } of SECRETS) {
    const file = join(dir, name);
    console.log(`${file}: ${keepSecret(file, { given: process.env[variable], generate })}`);
  }
} catch (error) {
  console.error(`The secrets cannot be written: ${error.message}`);
  process.exitCode = 1;
}

/**
 * The file may be the only copy of a key that has encrypted secrets.
 * @param {string} file
 * @param {string} given
 */
function checkSecretsKey(file, given) {
  const keys = keysOf(given);
  const kept = existsSync(file) && readFileSync(file, 'utf8').trim();
  if (kept && !keys.includes(keysOf(kept)[0]))
    throw new Error(
      `SLUICE_SECRETS_KEY lacks the key in ${file}, without which the secrets that it has encrypted are lost. Add that key to the list; if it has ` +
        'encrypted nothing, delete the file',
    );
}

/** @param {string} text */
function keysOf(text) {
  return SecretsConfig.read({ SLUICE_SECRETS_KEY: text }).keys.map((key) => key.toString('hex'));
}
