import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';
import { callInOwnProcess } from '../processes/own-process.mjs';
import { stopLeftover } from '../pid-files/pid-file.mjs';
import { postgresAccount } from './postgres-account.mjs';
import { postgresBinaries } from '../setup/postgres-binaries.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { writeSecret } from '../shell/secret-file.mjs';
import { notStarted, startServiceProcess, untilReady, withLogFile } from '../processes/service-process.mjs';

const GRACE_MS = 20_000;
// For PostgreSQL, SIGTERM means "wait until every client has left", SIGINT "close their connections and stop", SIGQUIT "stop at once".
const STOP = 'SIGINT';

/**
 * Starts the embedded PostgreSQL on 127.0.0.1 only, with all of its files in one folder.
 *
 * @param {object} options
 * @param {string} options.dir
 * @param {number} options.port
 * @param {boolean} [options.fast] for tests: fast, but not safe against a power failure
 * @param {{ cert: string, key: string }} [options.tls] PEM of the server's certificate; allows TLS connections
 * @param {(line: string) => void} [options.log]
 * @param {AbortSignal} [options.stopped] ends a server that does not respond yet
 * @returns {Promise<import('../processes/service-process.mjs').ServiceProcess & { url: string }>} once it responds
 */
export async function startPostgres({ dir, port, fast = false, tls, log = () => {}, stopped }) {
  const { initdb, postgres } = postgresBinaries();
  const data = postgresData(dir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await stopLeftoverPostgres(dir);
  const account = await postgresAccount(initdb);
  if (tls) await writeTlsFiles(dir, tls);
  if (!hasCluster(dir)) {
    log("… preparing the database's storage");
    await createCluster({ dir, data, initdb, account, fast });
  }
  await account.own(dir);
  // initdb has read it: from now on it belongs to this user alone, even if PostgreSQL runs as another one
  const passwordFile = postgresPasswordFile(dir);
  if (process.getuid?.() === 0) await chown(passwordFile, 0, 0);
  await removeStalePidFile(data);

  const logFile = postgresLog(dir);
  const tlsSettings = tls ? { ssl: 'on', ssl_cert_file: tlsFile(dir, 'crt'), ssl_key_file: tlsFile(dir, 'key') } : {};
  const settings = Object.entries({ ...serverSettings(port, fast), ...tlsSettings }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = withLogFile(logFile, (fd) =>
    startServiceProcess({
      name: 'postgres',
      kind: 'store',
      command: account.prefix[0] ?? postgres,
      args: [...[...account.prefix, postgres].slice(1), '-D', data, ...settings],
      spawn: { cwd: dir, stdio: ['ignore', fd, fd], ...account.ids },
      pidFile: postgresPidFile(dir),
      stopSignal: STOP,
      killSignal: 'SIGQUIT',
      graceMs: GRACE_MS,
    }),
  );

  const url = serverUrl(dir, port);
  const ready = (/** @type {AbortSignal} */ abandoned) =>
    callInOwnProcess(inRoot('scripts', 'stores', 'wait-for-postgres.mjs'), { url, logFile, passwordFile }, abandoned);
  const exit = await untilReady(server, ready, stopped);
  if (exit) throw notStarted('PostgreSQL', exit, logFile);
  return { ...server, url };
}

/**
 * The variables with which a service connects, with the password in a file.
 * @param {string} dir
 * @param {number} port
 */
export const postgresEnvironment = (dir, port) => ({
  DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
  DATABASE_PASSWORD_FILE: postgresPasswordFile(dir),
});

/**
 * Whether a server has been started in this folder before.
 * @param {string} dir
 */
export const hasCluster = (dir) => existsSync(join(postgresData(dir), 'PG_VERSION'));

/**
 * Stops the server that a killed launcher has left running on this folder.
 * @param {string} dir
 */
export const stopLeftoverPostgres = (dir) => stopLeftover(postgresPidFile(dir), { signal: STOP, graceMs: GRACE_MS });

/** @param {string} dir */
export const postgresLog = (dir) => join(dir, 'postgres.log');

/** @param {string} dir */
export const postgresData = (dir) => join(dir, 'data');

/** @param {string} dir */
export const postgresPidFile = (dir) => join(dir, 'postgres.pid');

/** @param {string} dir @param {'crt' | 'key'} kind */
const tlsFile = (dir, kind) => join(dir, `server.${kind}`);

/**
 * @param {string} dir
 * @param {{ cert: string, key: string }} tls
 */
async function writeTlsFiles(dir, { cert, key }) {
  await writeFile(tlsFile(dir, 'crt'), cert);
  await writeFile(tlsFile(dir, 'key'), key, { mode: 0o600 });
}

/** @param {string} dir */
export const postgresPasswordFile = (dir) => join(dir, 'password');

/**
 * @param {string} dir
 * @param {number} port
 */
const serverUrl = (dir, port) => `postgres://postgres:${readFileSync(postgresPasswordFile(dir), 'utf8').trim()}@127.0.0.1:${port}/postgres`;

/**
 * Creates the files of a new server, in another folder that is then renamed: a server with incomplete files would never start.
 * @param {{ dir: string, data: string, initdb: string, account: import('./postgres-account.mjs').PostgresAccount, fast: boolean }} options
 */
async function createCluster({ dir, data, initdb, account, fast }) {
  const half = `${data}.half`;
  await rm(half, { recursive: true, force: true });
  writeSecret(postgresPasswordFile(dir), randomBytes(24).toString('base64url'));
  await account.own(dir);
  if (account.ids.uid !== undefined) await chown(postgresPasswordFile(dir), account.ids.uid, account.ids.gid ?? 0);
  const [command, ...args] = [
    ...[...account.prefix, initdb, '-D', half, '--username=postgres', `--pwfile=${postgresPasswordFile(dir)}`, '--auth=scram-sha-256'],
    // Sorts text by bytes, regardless of the machine's language. This locale is part of PostgreSQL: some systems have none named C.UTF-8.
    ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', ...(fast ? ['--no-sync'] : [])],
  ];
  const { code, output } = await run(/** @type {string} */ (command), args, { cwd: dir, ...account.ids });
  if (code !== 0)
    throw new ExplainedError(`${output.trimEnd()}\n\nThe database's storage could not be initialized: initdb failed, see above.`);
  await rename(half, data);
}

/**
 * @param {number} port
 * @param {boolean} fast
 * @returns {Record<string, string | number>}
 */
const serverSettings = (port, fast) => ({
  port,
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 200,
  // For two cores and a machine that also runs everything else.
  shared_buffers: fast ? '128MB' : '256MB',
  effective_cache_size: '1GB',
  max_parallel_workers_per_gather: 0,
  jit: 'off',
  io_method: 'sync',
  // more handles would only occupy memory: with `sync`, a process waits for each read
  io_max_concurrency: 8,
  max_logical_replication_workers: 0,
  random_page_cost: 1.1,
  // Few, even checkpoints: after each of them, the first write to a page writes the whole page.
  max_wal_size: '2GB',
  min_wal_size: '256MB',
  checkpoint_timeout: '15min',
  // The queues (outbox, parked deliveries, runs) are tables in which rows come and go: dead rows must not accumulate.
  autovacuum_naptime: '15s',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  ...(fast && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
});

/**
 * After kill -9, PostgreSQL's own pid file remains, and another program may have its number by now: the server would then refuse to
 * start. Our own pid file has already shown that no server is left running.
 * @param {string} data
 */
async function removeStalePidFile(data) {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = (await readFile(file, 'utf8')).split('\n')[0];
  const command = await run('ps', ['-o', 'args=', '-p', String(pid)]);
  if (!command.missing && !command.output.includes(data)) await rm(file, { force: true });
}
