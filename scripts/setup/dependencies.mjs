import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inTurn } from './in-turn.mjs';
import { ensureNode24 } from './node24.mjs';
import { inRoot, isRepository } from '../shell/paths.mjs';
import { ensureEmbeddedPostgres } from './postgres-binaries.mjs';
import { run } from '../shell/run.mjs';

/** @typedef {(line: string) => void} Say */

/**
 * A folder with a separate lock file.
 * @typedef {object} Installation
 * @property {string} folder
 * @property {string} name what it contains, for people
 * @property {string} size of what npm downloads, and how long that takes
 */

/** @type {Installation} */
const SERVICES = { folder: inRoot(), name: 'the dependencies of the services', size: '250 MB, about a minute' };
/** The packages that components may import. The services never load them. @type {Installation} */
const COMPONENTS = { folder: inRoot('component-packages'), name: 'the packages of components', size: '22 MB, a few seconds' };

/**
 * Makes sure that both folders contain what their lock files say, and that the files of npm's install scripts exist.
 * Does nothing in an image.
 * @param {{ say?: Say }} [options]
 */
export async function ensureDependencies({ say = console.log } = {}) {
  if (!isRepository() || [SERVICES, COMPONENTS].every(isInstalled)) return;
  await inTurn(say, async () => {
    const installations = [
      ensureInstalled(SERVICES, say, async () => {
        await ensureNode24(say);
        await ensureEmbeddedPostgres();
      }),
      ensureInstalled(COMPONENTS, say),
    ];
    // Also if one fails: another command must not begin while npm still writes
    await Promise.allSettled(installations);
    await Promise.all(installations);
  });
}

/**
 * @param {Installation} installation
 * @param {Say} say
 * @param {() => Promise<void>} [complete]
 */
export async function ensureInstalled(installation, say, complete = async () => {}) {
  if (isInstalled(installation)) return;
  const { folder } = installation;
  const wanted = lockHash(folder);
  // npm's own record of the installed packages
  const installed = readIfThere(join(folder, 'node_modules', '.package-lock.json'));
  if (installed === null || !contains(installed, readFileSync(lockFile(folder), 'utf8')))
    await install(installation, installed !== null, say);
  await complete();
  writeFileSync(stampFile(folder), wanted);
}

/** @param {Installation} installation */
const isInstalled = ({ folder }) => readIfThere(stampFile(folder)) === lockHash(folder);

/** @param {string} folder */
const stampFile = (folder) => join(folder, 'node_modules', '.sluice-lock-hash');

/** @param {string} folder */
const lockFile = (folder) => join(folder, 'package-lock.json');

/** @param {string} folder */
const lockHash = (folder) =>
  createHash('sha256')
    .update(readFileSync(lockFile(folder)))
    .digest('hex');

/**
 * Installs all kinds of packages, also where NODE_ENV or the configuration of npm omits one: the build needs those for development.
 * @param {Installation} installation
 * @param {boolean} again
 * @param {Say} say
 */
async function install({ folder, name, size }, again, say) {
  const expected = again ? 'package-lock.json has changed' : `first time, ${size}`;
  const { code, output, missing } = await announced(say, `installing ${name}`, expected, () =>
    run('npm', ['ci', '--include=dev', '--include=optional', '--include=peer', '--no-audit', '--no-fund'], {
      cwd: folder,
      env: environmentForNpm(),
    }),
  );
  if (missing) throw new ExplainedError('npm is not in the PATH: install Node with npm and start again.');
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe dependencies could not be installed: npm ci failed, see above.`);
}

/**
 * Whether a person has installed exactly the packages of the lock file, with npm install or npm ci.
 * The lock file contains packages for other platforms that are never installed.
 * @param {string} installed
 * @param {string} lock
 */
function contains(installed, lock) {
  const actual = JSON.parse(installed).packages;
  const wanted = Object.entries(JSON.parse(lock).packages).filter(([path]) => path !== '');
  return wanted.every(([path, entry]) => (actual[path] ? actual[path].version === entry.version : entry.optional === true));
}

/** npm replaces node_modules, so it must not run on the Node in that folder, which npm scripts have first in their PATH. */
function environmentForNpm() {
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(inRoot('node_modules')))
    .join(delimiter);
  return { ...process.env, PATH: path, NODE_OPTIONS: '' };
}

/** @param {string} file */
function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
