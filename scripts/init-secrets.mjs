// sluice secrets init DIR [NAME…]: writes the password of PostgreSQL, the API key of the first account and the key that encrypts secrets to files, or those of
// them that are named. POSTGRES_PASSWORD, SLUICE_API_KEY and SLUICE_SECRETS_KEY set the values; otherwise they are random, and generated only once. No value
// is ever printed.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { newApiKey } from '../dist/apps/gateway/src/accounts/api-key.js';
import { FirstAccountConfig } from '../dist/apps/gateway/src/gateway.config.js';
import { SecretsConfig } from '../dist/libs/secrets/src/index.js';
import { keepSecret, readSecret, writeSecret } from './shell/secret-file.mjs';
import { newSecretsKey } from './shell/secrets-key.mjs';

/** Each returns what it has done. @type {Record<string, (file: string) => string>} */
const SECRETS = { 'postgres-password': keepPassword, 'api-key': keepApiKey, 'secrets-key': keepSecretsKey };
const OWNER = 0o400;
/** The group is that of PostgreSQL in Compose. */
const OWNER_AND_GROUP = 0o440;

const [dir, ...named] = process.argv.slice(2);
if (!dir || named.some((name) => !Object.hasOwn(SECRETS, name))) {
  console.error(`Usage: sluice secrets init DIR [${Object.keys(SECRETS).join(' | ')}]…`);
  process.exit(2);
}
const names = named.length > 0 ? named : Object.keys(SECRETS);
try {
  // before anything is written
  if (names.includes('api-key')) FirstAccountConfig.read();
  if (names.includes('secrets-key') && process.env.SLUICE_SECRETS_KEY)
    checkSecretsKey(join(dir, 'secrets-key'), process.env.SLUICE_SECRETS_KEY);
  mkdirSync(dir, { recursive: true, mode: 0o750 });
  for (const name of names) {
    const file = join(dir, name);
    console.log(`${file}: ${SECRETS[name]?.(file)}`);
  }
} catch (error) {
  console.error(`The secrets cannot be written: ${error.message}`);
  process.exitCode = 1;
}

/**
 * A given password does not change the one of the database, which may still be the generated one.
 * @param {string} file
 */
function keepPassword(file) {
  const given = process.env.POSTGRES_PASSWORD;
  const kept = readSecret(file);
  const first = `${file}.first`;
  if (kept && given && given !== kept && !existsSync(first)) writeSecret(first, kept);
  const done = keepSecret(file, { given, generate: () => randomBytes(24).toString('base64url'), mode: OWNER_AND_GROUP });
  return done === 'replaced' ? `${done}; the first password is in ${first}` : done;
}

/**
 * SLUICE_API_KEY in an operator's shell may be for the command line, and belong to another installation.
 * @param {string} file
 */
function keepApiKey(file) {
  const given = process.env.SLUICE_API_KEY;
  const kept = readSecret(file);
  const done = keepSecret(file, { given: kept ? undefined : given, generate: newApiKey, mode: OWNER });
  return kept && given && given !== kept
    ? `${done}; SLUICE_API_KEY is ignored, because it only sets the first key of a new installation`
    : done;
}

/** @param {string} file */
function keepSecretsKey(file) {
  return keepSecret(file, { given: process.env.SLUICE_SECRETS_KEY, generate: newSecretsKey, mode: OWNER });
}

/**
 * The file may be the only copy of a key that has encrypted secrets.
 * @param {string} file
 * @param {string} given
 */
function checkSecretsKey(file, given) {
  const keys = keysOf(given);
  const kept = readSecret(file);
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
