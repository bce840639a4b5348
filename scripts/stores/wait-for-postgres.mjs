// Runs in a separate process: waits until a PostgreSQL server accepts our login.
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { respondToCaller } from '../processes/own-process.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';

const PATIENCE_MS = 120_000;
/** SQLSTATEs. */
const WRONG_PASSWORD = '28P01';
const STARTING_UP = '57P03';

/** @typedef {{ url: string, passwordFile: string, logFile: string }} Server */

respondToCaller(async (/** @type {Server} */ { url, passwordFile, logFile }) => {
  let deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const failure = await loginFailure(url);
    if (failure === null) return;
    const { code } = /** @type {{ code?: string }} */ (failure);
    // after kill -9, it replays its write-ahead log, and would begin again from the start if it was ended meanwhile
    if (code === STARTING_UP) deadline = performance.now() + PATIENCE_MS;
    if (code === WRONG_PASSWORD)
      throw new ExplainedError(`PostgreSQL does not accept the password in ${passwordFile}: restore the file from a backup.`);
    if (performance.now() > deadline)
      throw new ExplainedError(`PostgreSQL does not respond after ${PATIENCE_MS / 1000} s; its log is ${logFile}.`);
    await sleep(50);
  }
});

/**
 * Why a PostgreSQL server does not accept our login; null if it does.
 * @param {string} url
 * @returns {Promise<Error | null>}
 */
async function loginFailure(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return null;
  } catch (error) {
    return /** @type {Error} */ (error);
  } finally {
    await client.end().catch(() => {});
  }
}
