import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { APPS } from '../processes/apps.mjs';
import { stopLeftoverBroker } from '../stores/broker.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { claim, deleteOldClaims, otherClaimant, takeBackClaim } from '../pid-files/claims.mjs';
import { readForeignPidFile, readPidFile, removePidFile, stopLeftover, writePidFile } from '../pid-files/pid-file.mjs';
import { stopLeftoverPostgres } from '../stores/postgres.mjs';
import { writeSecret } from '../shell/secret-file.mjs';
import { removeDrafts } from '../shell/whole-file.mjs';

/**
 * The data folder of an instance:
 *
 *     lock            the process that uses it, which touches it every ten seconds
 *     claims/*        the processes that use it or want to, see `claims.mjs`
 *     running.json    the addresses of the running instance (deleted when it begins to stop)
 *     last-start      the hash of what the last successful start depended on
 *     api-key         of the first account
 *     secrets-key     SLUICE_SECRETS_KEY, if the environment has none
 *     apps/*.pid      the apps' processes
 *     secrets/        the values of secret variables in the environment
 *     sandbox/        the root directory of the jail of components
 *     broker/         Apache Kafka: its data, log, configuration, password
 *     postgres/       PostgreSQL: its data, log, password
 *
 * @param {string} dir
 */
export const dataFolder = (dir) => ({
  dir,
  lock: join(dir, 'lock'),
  claims: join(dir, 'claims'),
  running: join(dir, 'running.json'),
  lastStart: join(dir, 'last-start'),
  apiKey: join(dir, 'api-key'),
  secretsKey: join(dir, 'secrets-key'),
  secrets: join(dir, 'secrets'),
  broker: join(dir, 'broker'),
  postgres: join(dir, 'postgres'),
  /** @param {string} app */
  appPidFile: (app) => join(dir, 'apps', `${app}.pid`),
});

/** @typedef {ReturnType<typeof dataFolder>} DataFolder */

/** A folder with one of these files is a data folder. Other programs have folders named `apps` and `secrets`, too. */
const MARKS = new Set(['lock', 'claims', 'running.json', 'last-start', 'api-key', 'secrets-key', 'broker', 'postgres', 'sandbox']);

const TOUCH_EVERY_MS = 10_000;
/** How long a store that a killed launcher has left running takes to stop. */
const STORES_STOP_MS = 20_000;
/** @type {NodeJS.Timeout | undefined} */
let touching;

/**
 * Locks a data folder for this process. Waits for another instance that is stopping, or starting: one that has no running.json.
 *
 * A process of another PID namespace, such as that of a container, counts as running until its file has not changed for as long as its services and stores may
 * take to stop.
 * @param {DataFolder} folder
 * @param {{ say?: (line: string) => void, graceMs?: number, withinMs?: number, silentMs?: number, lost?: () => void }} [options]
 *   graceMs: how long a service may take to stop. The gateway stops before the others, so a stop usually takes less than twice as long, also with runs that use
 *   all of the time that they have to end.
 *   silentMs: after which a process of another PID namespace whose file does not change counts as ended.
 *   lost: called if such a process has taken the folder, because this one was suspended for that long.
 * @throws {ExplainedError} if another instance is running, or still has the lock after `withinMs`; if the folder cannot be used
 */
export async function lockDataFolder(
  folder,
  { say = () => {}, graceMs = 10_000, withinMs = 2 * graceMs, silentMs = graceMs + STORES_STOP_MS, lost = () => {} } = {},
) {
  const deadline = performance.now() + withinMs;
  const foreign = new ForeignProcesses(silentMs);
  const find = (/** @type {string} */ file) => readPidFile(file) ?? foreign.find(file);
  /** @type {Set<string>} */
  const said = new Set();
  const sayOnce = (/** @type {string} */ line) => {
    if (!said.has(line)) say(line);
    said.add(line);
  };
  try {
    openFolder(folder);
    for (;;) {
      claim(folder.claims);
      const holder = find(folder.lock);
      // also while there is a holder: a process of another PID namespace is observed from the beginning
      const claimant = otherClaimant(folder.claims, find);
      const other = holder ?? claimant;
      if (!other) {
        // of an instance that was killed
        rmSync(folder.running, { force: true });
        writePidFile(folder.lock, process.pid);
        deleteOldClaims(folder.claims, find);
        // they may contain secrets; other processes write only claims
        for (const part of [folder.dir, folder.secrets, folder.broker, folder.postgres]) removeDrafts(part);
        keepTouching(folder, lost);
        return;
      }
      takeBackClaim(folder.claims);
      const isUnknown = 'isAlive' in other && !other.isAlive;
      const who = 'isAlive' in other ? `process ${other.pid} of another container, or outside this one` : `process ${other.pid}`;
      if (!isUnknown && ((holder && existsSync(folder.running)) || performance.now() > deadline)) {
        throw new ExplainedError(
          `Sluice is already running on ${folder.dir} (${who}): stop it first, or set another folder in SLUICE_DATA_DIR.`,
        );
      }
      sayOnce(
        isUnknown
          ? `Sluice may be running on ${folder.dir} (${who}): waiting for up to ${silentMs / 1000} s for a sign that it is running`
          : `Sluice is starting or stopping on ${folder.dir} (${who}): waiting until it has stopped, at most ${withinMs / 1000} s`,
      );
      // not all at the same time
      await sleep(30 + Math.random() * 40);
    }
  } catch (error) {
    if (error instanceof ExplainedError) throw error;
    throw new ExplainedError(`The data folder ${folder.dir} cannot be used: ${/** @type {Error} */ (error).message}.`);
  }
}

/**
 * Creates the folder, or checks that it is one of Sluice. PostgreSQL, which may run as another user, can traverse it.
 * @param {DataFolder} folder
 * @throws {ExplainedError} if it contains only other files, or those of another user
 */
function openFolder(folder) {
  const { dir } = folder;
  // root could use it, but would take files from its owner, who could not use it afterwards
  const owner = otherOwner(folder.claims) ?? (process.getuid?.() === 0 ? null : otherOwner(folder.postgres));
  if (owner !== null)
    throw new ExplainedError(
      `The data folder ${dir} belongs to another user (uid ${owner}): start Sluice as that user, or change the owner with chown -R.`,
    );
  if (mkdirSync(dir, { recursive: true })) chmodSync(dir, 0o711);
  else {
    const names = readdirSync(dir).filter((name) => name !== 'lost+found');
    if (names.length > 0 && !names.some((name) => MARKS.has(name)))
      throw new ExplainedError(
        `SLUICE_DATA_DIR must be a separate folder, but ${dir} has other files, such as ${names[0]}: set it to a folder that is empty or does not exist.`,
      );
    const { mode } = statSync(dir);
    if ((mode & 0o011) !== 0o011) chmodSync(dir, (mode & 0o7777) | 0o011);
  }
  // the claims first: a simultaneous start recognises the folder by them
  for (const part of [folder.claims, join(dir, 'apps')]) mkdirSync(part, { recursive: true });
}

/**
 * The owner of a file or folder, if it is not this user.
 * @param {string} path
 */
function otherOwner(path) {
  const uid = statSync(path, { throwIfNoEntry: false })?.uid;
  return uid === undefined || uid === process.getuid?.() ? null : uid;
}

/** Processes of other PID namespaces, which may have the same process ids. */
class ForeignProcesses {
  /** @type {Map<string, { writtenAt: number, since: number, isAlive: boolean }>} by file; since: when it was seen first */
  #seen = new Map();
  #silentMs;

  /** @param {number} silentMs a process whose file has not changed for this time has ended. No clock is compared with the file's: either may be wrong. */
  constructor(silentMs) {
    this.#silentMs = silentMs;
  }

  /**
   * @param {string} file
   * @returns {{ pid: number, isAlive: boolean } | null} isAlive: the file has changed since it was seen first
   */
  find(file) {
    const found = readForeignPidFile(file);
    if (!found) return null;
    const { pid, writtenAt } = found;
    const seen = this.#seen.get(file);
    if (seen?.writtenAt !== writtenAt) this.#seen.set(file, { writtenAt, since: performance.now(), isAlive: seen !== undefined });
    const { since, isAlive } = this.#seen.get(file) ?? { since: 0, isAlive: false };
    return performance.now() - since > this.#silentMs ? null : { pid, isAlive };
  }
}

/**
 * Shows processes of other PID namespaces that this one is running. Calls `lost` if one of them has the folder.
 * @param {DataFolder} folder
 * @param {() => void} lost
 */
function keepTouching(folder, lost) {
  clearInterval(touching);
  touching = setInterval(() => {
    try {
      if (hasLock(folder)) utimesSync(folder.lock, new Date(), new Date());
      else if (readForeignPidFile(folder.lock)) {
        clearInterval(touching);
        lost();
      }
    } catch {
      // the folder was removed, or can only be read
    }
  }, TOUCH_EVERY_MS).unref();
}

/**
 * Whether this process still has the folder: if it was suspended for long, such as with its container, a process of another PID namespace may have it.
 * @param {DataFolder} folder
 */
const hasLock = (folder) => readPidFile(folder.lock)?.pid === process.pid;

/**
 * The instance is about to stop: commands no longer find it, and the next start waits for it.
 * @param {DataFolder} folder
 */
export function withdraw(folder) {
  if (hasLock(folder)) rmSync(folder.running, { force: true });
}

/** @param {DataFolder} folder */
export function unlockDataFolder(folder) {
  clearInterval(touching);
  withdraw(folder);
  if (hasLock(folder)) removePidFile(folder.lock);
  takeBackClaim(folder.claims);
}

/**
 * Stops the processes that a killed launcher has left running on this folder, in order.
 * @param {DataFolder} folder
 * @param {{ graceMs?: number }} [options] how long a service may take to stop before it is killed
 * @returns {Promise<boolean>} whether there were any
 */
export async function stopLeftovers(folder, options) {
  const apps = await Promise.all(APPS.map((app) => stopLeftover(folder.appPidFile(app), options)));
  const stores = await Promise.all([stopLeftoverBroker(folder.broker), stopLeftoverPostgres(folder.postgres)]);
  return [...apps, ...stores].includes(true);
}

/**
 * Writes down how to reach a running instance: the variables of a service for its stores, and the addresses for programs of users.
 * @param {DataFolder} folder
 * @param {Record<string, string>} stores
 * @param {{ url: string, kafka: string }} addresses of the REST API, and of the broker's public topics
 */
export const announce = (folder, stores, { url, kafka }) =>
  writeSecret(folder.running, JSON.stringify({ ...stores, SLUICE_LOCAL_URL: url, SLUICE_LOCAL_KAFKA: kafka }, null, 2));

/**
 * @param {DataFolder} folder
 * @returns {Record<string, string> | null} null if no instance is running on this folder
 */
export function findRunning(folder) {
  if (!readPidFile(folder.lock)) return null;
  try {
    return JSON.parse(readFileSync(folder.running, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Whether an instance of another user is running on this folder, whose addresses this user may not read.
 * @param {DataFolder} folder
 */
export const isOfAnotherUser = (folder) =>
  readPidFile(folder.lock) !== null && process.getuid?.() !== 0 && otherOwner(folder.running) !== null;

/**
 * Whether a running instance uses the database that the environment names. Even then, it may have the embedded broker.
 * @param {Record<string, string>} running
 * @param {Record<string, string | undefined>} env
 */
export function usesDatabaseOf({ DATABASE_URL_FILE: file }, env) {
  if (!file) return false;
  try {
    const given = env['DATABASE_URL'] || readFileSync(env['DATABASE_URL_FILE'] ?? '', 'utf8');
    return readFileSync(file, 'utf8').trim() === given.trim();
  } catch {
    return false;
  }
}

/**
 * The variables with which the command line finds the instance of a folder: without an instance there is neither a URL nor a key, because another program
 * may be listening on its port. None for the instance of another user, whose key belongs to that user.
 * @param {DataFolder} folder
 */
export function localInstance(folder) {
  if (isOfAnotherUser(folder)) return {};
  const running = findRunning(folder);
  return {
    SLUICE_LOCAL_FOLDER: folder.dir,
    SLUICE_LOCAL_URL: running?.['SLUICE_LOCAL_URL'],
    SLUICE_LOCAL_KEY_FILE: running ? folder.apiKey : undefined,
  };
}
