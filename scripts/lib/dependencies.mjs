import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { ExplainedError } from './explained-error.mjs';
import { ensureNode24 } from './node24.mjs';
import { inRoot, isRepository } from './paths.mjs';
import { ensureEmbeddedPostgres } from './postgres-binaries.mjs';
import { run } from './run.mjs';

/** @typedef {(line: string) => void} Say */

const lockFile = inRoot('package-lock.json');
const stampFile = inRoot('node_modules', '.sluice-lock-hash');
// npm's own record of the installed packages.
const installedFile = inRoot('node_modules', '.package-lock.json');

/**
 * Makes sure that node_modules matches package-lock.json, and that the files of npm's install scripts exist.
 * Does nothing in an image.
 * @param {{ say?: Say }} [options]
 */
export async function ensureDependencies({ say = console.log } = {}) {
  if (!isRepository()) return;
  const wanted = createHash('sha256').update(readFileSync(lockFile)).digest('hex');
  if (readIfThere(stampFile) === wanted) return;
  if (!isInstalled()) await install(say);
  await ensureNode24();
  await ensureEmbeddedPostgres();
  writeFileSync(stampFile, wanted);
}

/** @param {Say} say */
async function install(say) {
  say(
    existsSync(installedFile)
      ? '… installing dependencies (package-lock.json has changed)'
      : '… installing dependencies (first time, about a minute)',
  );
  const { code, output, missing } = await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: inRoot(), env: environmentForNpm() });
  if (missing) throw new ExplainedError('npm is not in the PATH: install Node with npm and start again.');
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe dependencies could not be installed: npm ci failed, see above.`);
}

/**
 * Whether a person has installed exactly the packages of the lock file, with npm install or npm ci.
 * The lock file contains packages for other platforms that are never installed.
 */
function isInstalled() {
  const installed = readIfThere(installedFile);
  if (installed === null) return false;
  const actual = JSON.parse(installed).packages;
  const wanted = Object.entries(JSON.parse(readFileSync(lockFile, 'utf8')).packages).filter(([path]) => path !== '');
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
