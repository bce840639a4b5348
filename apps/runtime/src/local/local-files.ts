import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { Invalid } from '#contracts';
import { candidates, relativeImports } from '#relative-imports';
import type { ComponentFiles } from '../sandbox/sandbox.js';

/** The same limit as for a component by URL. */
const MOST_FILES = 50;

/**
 * Reads a component's file and its relative imports from disk. Throws Invalid if the file cannot be read. The bundler reports missing imports, with the line.
 */
export async function localFiles(entry: string): Promise<ComponentFiles> {
  const text = await readFile(entry, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Invalid(error.code === 'ENOENT' ? `the file ${entry} does not exist` : `${entry} cannot be read: ${error.message}`);
  });
  const codes = new Map([[resolve(entry), text]]);
  // grows while it is read
  for (const [file, code] of codes) {
    for (const specifier of relativeImports(code)) {
      const found = await neighbour(
        candidates(specifier).map((each) => resolve(dirname(file), each)),
        codes,
      );
      if (!found) continue;
      if (codes.size >= MOST_FILES) throw new Invalid(`the component has more than ${MOST_FILES} files`);
      codes.set(found.path, found.code);
    }
  }
  const files = [...codes.keys()];
  const root = files.map(dirname).reduce(common);
  const name = (file: string) => relative(root, file).split(sep).join('/');
  return { entry: name(files[0]!), files: Object.fromEntries(files.map((file) => [name(file), codes.get(file)!])) };
}

/** The first of the files that exists; undefined if it has been read or none exists. */
async function neighbour(paths: string[], codes: ReadonlyMap<string, string>): Promise<{ path: string; code: string } | undefined> {
  for (const path of paths) {
    if (codes.has(path)) return undefined;
    const code = await readFile(path, 'utf8').catch(() => null);
    if (code !== null) return { path, code };
  }
  return undefined;
}

function common(a: string, b: string): string {
  const [left, right] = [a.split(sep), b.split(sep)];
  const end = left.findIndex((part, index) => part !== right[index]);
  return end === -1 ? a : left.slice(0, end).join(sep) || sep;
}
