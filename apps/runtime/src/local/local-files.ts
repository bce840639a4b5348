import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { Invalid } from '#contracts';
import { candidates, relativeImports } from '#relative-imports';
import type { ComponentFiles } from '../sandbox/sandbox.js';

/** The same limit as for a component by URL. */
const MOST_FILES = 50;

/**
 * Reads a component's file and its relative imports from disk. Throws Invalid if a file cannot be read or is not UTF-8. The bundler reports missing imports,
 * with the line.
 */
export async function localFiles(entry: string): Promise<ComponentFiles> {
  const text = await textOf(entry).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Invalid(`the file ${entry} does not exist`) : unreadable(entry, error);
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
    const code = await textOf(path).catch((error: NodeJS.ErrnoException) => {
      if (ABSENT.includes(error.code ?? '')) return null;
      // another candidate must not take its place
      throw unreadable(path, error);
    });
    if (code !== null) return { path, code };
  }
  return undefined;
}

/** The error codes of a file that does not exist, or is a folder. */
const ABSENT = ['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG'];

async function textOf(path: string): Promise<string> {
  const bytes = await readFile(path);
  if (!isUtf8(bytes)) throw new Invalid(`${path} is not UTF-8`);
  return bytes.toString('utf8');
}

const unreadable = (path: string, error: Error): Invalid =>
  error instanceof Invalid ? error : new Invalid(`${path} cannot be read: ${error.message}`);

function common(a: string, b: string): string {
  const [left, right] = [a.split(sep), b.split(sep)];
  const end = left.findIndex((part, index) => part !== right[index]);
  return end === -1 ? a : left.slice(0, end).join(sep) || sep;
}
