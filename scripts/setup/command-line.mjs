import { existsSync, readdirSync, statSync } from 'node:fs';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { node24 } from './node24.mjs';

const bundle = inRoot('packages', 'cli', 'dist', 'sluice.mjs');
const SOURCES = [
  'package-lock.json',
  'scripts/shell/whole-file.mjs',
  'packages/cli/build.mjs',
  'packages/cli/package.json',
  'packages/cli/src',
  'packages/cli/types',
  'packages/client/src',
];

/**
 * Bundles the command line for users if one of its files has changed since the last time.
 * @param {{ say?: (line: string) => void }} [options]
 * @returns {Promise<string>} the path of the bundle
 */
export async function ensureCommandLine({ say = console.log } = {}) {
  const built = statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built > Math.max(...SOURCES.map(newestChange))) return bundle;
  const expected = built ? 'sources have changed, a few seconds' : 'first time, a few seconds';
  const { code, output } = await announced(say, 'building the command line', expected, () =>
    run(node24(), [inRoot('packages', 'cli', 'build.mjs')], { cwd: ROOT }),
  );
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe command line could not be built, see above.`);
  return bundle;
}

/**
 * When a file, or one in a folder, was last changed; a folder also changes when a file is deleted from it.
 * @param {string} path relative to the repository
 */
function newestChange(path) {
  const root = inRoot(path);
  if (!existsSync(root)) throw new ExplainedError(`${root} is missing: the command line for users is only built in the repository.`);
  const inside = statSync(root).isDirectory() ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : [];
  return Math.max(...['', ...inside].map((name) => statSync(inRoot(path, name)).mtimeMs));
}
