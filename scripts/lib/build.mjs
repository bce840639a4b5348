import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExplainedError } from './explained-error.mjs';
import { inRoot, isRepository, ROOT } from './paths.mjs';
import { run } from './run.mjs';

const compiler = inRoot('node_modules', 'typescript', 'bin', 'tsc');
const stampFile = inRoot('dist', '.build-stamp.json');

/**
 * Compiles apps, libraries and benchmarks into dist/ when one of their files has changed since the last time.
 * Does nothing in an image.
 * @param {{ say?: (line: string) => void }} [options]
 */
export async function ensureBuild({ say = console.log } = {}) {
  if (!isRepository()) return;
  const sources = listSources();
  const state = createHash('sha256').update(JSON.stringify(sources)).digest('hex');
  const last = readStamp();
  if (last?.state === state) return;

  say(last ? '… building (sources have changed)' : '… building');
  const files = sources.map(([file]) => file);
  for (const gone of (last?.files ?? []).filter((file) => !files.includes(file))) removeOutput(gone);
  const { code, output } = await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: ROOT });
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nThe build failed, see above.`);
  mkdirSync(inRoot('dist'), { recursive: true });
  writeFileSync(stampFile, JSON.stringify({ state, files }));
}

/**
 * What the build depends on.
 * @returns {[file: string, size: number, changedAt: number][]}
 */
function listSources() {
  const folders = ['apps', 'libs', 'bench'].filter((folder) => existsSync(inRoot(folder)));
  const files = folders.flatMap((folder) =>
    readdirSync(inRoot(folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  return ['package.json', 'tsconfig.json', 'tsconfig.build.json', ...files.sort()].flatMap((file) => {
    const entry = statSync(inRoot(file), { throwIfNoEntry: false });
    return entry?.isFile() ? [[file, entry.size, entry.mtimeMs]] : [];
  });
}

/**
 * The compiler leaves the output of a source that is gone, and a migration that is gone must not run.
 * @param {string} source
 */
function removeOutput(source) {
  const output = inRoot('dist', source.replace(/\.ts$/, '.js'));
  rmSync(output, { force: true });
  rmSync(`${output}.map`, { force: true });
}

/** @returns {{ state: string, files: string[] } | null} */
function readStamp() {
  try {
    return JSON.parse(readFileSync(stampFile, 'utf8'));
  } catch {
    return null;
  }
}
