import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

const WANTED = 24;
const packageFolder = inRoot('node_modules', 'node');
const packaged = inRoot('node_modules', 'node', 'bin', 'node');
const ownIsNewEnough = () => Number(process.versions.node.split('.')[0]) >= WANTED;

/**
 * The Node that runs the apps and the tests: the one from npm, so that it does not depend on the machine. If it is not installed
 * (an image has no development packages), the Node that runs this.
 * @returns {string} the path of the executable
 */
export const node24 = () => (existsSync(packaged) ? packaged : process.execPath);

/**
 * Makes sure that `node24()` works and is new enough.
 * @param {(line: string) => void} say
 */
export async function ensureNode24(say) {
  if (works(packaged)) return;
  // npm may be configured not to run install scripts, and such a script downloads the executable.
  if (existsSync(packageFolder)) {
    const { code } = await announced(say, `installing Node ${WANTED}`, 'first time, about 50 MB', () =>
      run(process.execPath, ['installArchSpecificPackage.js'], { cwd: packageFolder }),
    );
    if (code === 0 && works(packaged)) return;
  }
  if (ownIsNewEnough() && !existsSync(packaged)) return;
  throw new ExplainedError(
    `Sluice runs on Node ${WANTED}, which npm could not install for this machine (this is Node ${process.versions.node}): ` +
      `install Node ${WANTED} and start again.`,
  );
}

/** @param {string} executable */
function works(executable) {
  if (!existsSync(executable)) return false;
  try {
    return execFileSync(executable, ['--version'], { encoding: 'utf8' }).startsWith(`v${WANTED}.`);
  } catch {
    return false;
  }
}
