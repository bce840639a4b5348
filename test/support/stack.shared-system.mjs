import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { appEnvironment, superviseApps } from '../../scripts/processes/apps.mjs';
import { commandOf } from '../../scripts/setup/bundles.mjs';
import { node24 } from '../../scripts/setup/node24.mjs';
import { freePort } from '../../scripts/shell/ports.mjs';
import { SECRETS_KEY } from './secrets-key.mjs';

/**
 * Starts the system for the stories that share one. `joinSystem` reads its environment from `SLUICE_TEST_SHARED_SYSTEM`.
 *
 * @returns {Promise<() => Promise<void>>} a function that stops it
 */
export async function startSharedSystem() {
  const env = {
    DATABASE_URL: process.env.SLUICE_TEST_DATABASE_URL,
    SLUICE_SECRETS_KEY: SECRETS_KEY,
    KAFKA_BROKERS: process.env.SLUICE_TEST_KAFKA_BROKERS,
    SLUICE_HTTP_PORT: String(await freePort()),
    SLUICE_ENDPOINTS_PORT: String(await freePort()),
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
  };
  const complaints = [];
  const apps = superviseApps({
    env,
    log: (app, line) => {
      if (/"level":"(error|fatal)"/.test(line)) complaints.push(`${app} ${line}`);
      if (process.env.SLUICE_TEST_LOG) console.log(app, line);
    },
  });
  try {
    await promisify(execFile)(node24(), [commandOf('migrate')], { env: appEnvironment(env) });
    await apps.startAll();
  } catch (error) {
    await apps.stopAll();
    throw new Error(`the shared system did not start:\n${complaints.join('\n')}`, { cause: error });
  }
  process.env.SLUICE_TEST_SHARED_SYSTEM = JSON.stringify(env);
  return async () => {
    delete process.env.SLUICE_TEST_SHARED_SYSTEM;
    await apps.stopAll();
  };
}
