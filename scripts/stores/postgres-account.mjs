import { lstat } from 'node:fs/promises';
import { ExplainedError } from '../shell/explained-error.mjs';
import { ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

/**
 * The user that runs PostgreSQL, which refuses to run as root.
 *
 * @typedef {object} PostgresAccount
 * @property {string[]} prefix a command that runs its programs
 * @property {{ uid?: number, gid?: number }} ids
 * @property {(dir: string) => Promise<void>} own makes this user the owner of a folder and its contents
 */

// Inside this namespace we are an ordinary user; outside of it nothing changes. So no user must be created, and a repository
// below /root stays readable. Containers often forbid it.
const NAMESPACE = ['unshare', '--user', '--map-user=1000', '--map-group=1000'];
// The number of "nobody" on Linux.
const NOBODY = 65534;

/**
 * @param {string} program one of its programs, for a test run
 * @returns {Promise<PostgresAccount>}
 */
export async function postgresAccount(program) {
  if (process.getuid?.() !== 0) return { prefix: [], ids: {}, own: async () => {} };
  const inNamespace = await run('unshare', [...NAMESPACE.slice(1), program, '--version']);
  if (inNamespace.code === 0) return { prefix: NAMESPACE, ids: {}, own: (dir) => giveTo(0, dir) };
  const ids = { uid: NOBODY, gid: NOBODY };
  const asNobody = await run(program, ['--version'], { cwd: '/', ...ids });
  if (asNobody.code === 0) return { prefix: [], ids, own: (dir) => giveTo(NOBODY, dir) };
  throw new ExplainedError(
    `PostgreSQL refuses to run as root, and no other user can read ${ROOT}: start Sluice as an ordinary user, ` +
      'move it to a folder that all users can read, or set DATABASE_URL to a database server.',
  );
}

/**
 * @param {number} owner
 * @param {string} dir
 */
async function giveTo(owner, dir) {
  const { uid } = await lstat(dir);
  if (uid !== owner) await run('chown', ['-R', `${owner}:${owner}`, dir]);
}
