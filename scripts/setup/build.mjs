import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot, isRepository, ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { bundleApps, bundles, compileBundles } from './bundles.mjs';
import { inTurn } from './in-turn.mjs';

const compiler = inRoot('node_modules', 'typescript-native', 'bin', 'tsc');
const compilerNotes = inRoot('dist', 'build.tsbuildinfo');
const stampFile = inRoot('dist', '.build-stamp.json');

/**
 * Compiles apps, libraries and benchmarks into dist/, and bundles the apps, if one of their files has changed since the last build.
 * Does nothing in an image.
 * @param {{ say?: (line: string) => void }} [options]
 * @returns {Promise<string | undefined>} the state of these files
 */
export async function ensureBuild({ say = console.log } = {}) {
  if (!isRepository()) return undefined;
  const { state, isBuilt } = inspect();
  return isBuilt ? state : inTurn(say, () => build(say));
}

/**
 * @param {(line: string) => void} say
 * @returns {Promise<string>} the state of the files that have been built
 */
async function build(say) {
  const { files, gone, state, complete, isBuilt } = inspect();
  if (isBuilt) return state;

  // The compiler trusts its own records: it would not write deleted output again.
  if (!complete) rmSync(compilerNotes, { force: true });
  gone.forEach(removeOutput);
  // The compiler writes its records last. If it is interrupted, they do not match what it has written: without the stamp, the next build begins from scratch.
  rmSync(stampFile, { force: true });
  const expected = complete ? 'sources have changed, a few seconds' : 'first time, up to a minute';
  await announced(say, 'building the services', expected, async () => {
    const { code, output } = await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: ROOT });
    if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe build failed, see above.`);
    await bundleApps();
    if (!(await compileBundles())) say('  The services could not be compiled in advance: their first start takes longer.');
  });
  mkdirSync(inRoot('dist'), { recursive: true });
  writeFileSync(stampFile, JSON.stringify({ state, files }));
  return state;
}

/** Compares the sources with those of the last build, and its output with the expected files. */
function inspect() {
  const sources = listSources();
  const state = createHash('sha256').update(JSON.stringify(sources)).digest('hex');
  const files = sources.map(([file]) => file);
  const last = readStamp();
  const gone = last?.files.filter((file) => !files.includes(file)) ?? [];
  /** @param {string} file */
  const isCompleteWith = (file) => gone.includes(file) || !isCompiled(file) || existsSync(outputOf(file));
  const complete = (last?.files.every(isCompleteWith) && bundles().every((file) => existsSync(file))) ?? false;
  return { files, gone, state, complete, isBuilt: complete && last?.state === state };
}

/**
 * The files that the build depends on.
 * @returns {[file: string, size: number, changedAt: number][]}
 */
function listSources() {
  const folders = ['apps', 'libs', 'bench'].filter((folder) => existsSync(inRoot(folder)));
  const files = folders.flatMap((folder) =>
    readdirSync(inRoot(folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  const settings = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'scripts/setup/bundles.mjs',
    'scripts/migrate.mjs',
    'scripts/shell/whole-file.mjs',
    'scripts/shell/wrong-usage.mjs',
  ];
  return [...settings, ...files.sort()].flatMap((file) => {
    const entry = statSync(inRoot(file), { throwIfNoEntry: false });
    return entry?.isFile() ? [[file, entry.size, entry.mtimeMs]] : [];
  });
}

/**
 * The compiler keeps the output of a deleted source.
 * @param {string} source
 */
function removeOutput(source) {
  rmSync(outputOf(source), { force: true });
  rmSync(`${outputOf(source)}.map`, { force: true });
}

/** @param {string} source */
const outputOf = (source) => inRoot('dist', source.replace(/\.ts$/, '.js'));

/** @param {string} source */
const isCompiled = (source) => source.endsWith('.ts') && !/\.(d|spec|int-spec)\.ts$/.test(source);

/** @returns {{ state: string, files: string[] } | null} */
function readStamp() {
  try {
    return JSON.parse(readFileSync(stampFile, 'utf8'));
  } catch {
    return null;
  }
}
