import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { Invalid } from '#contracts';
import type { ComponentFiles } from '../sandbox/sandbox.js';

/** The same limit as for a component by URL. */
const MOST_FILES = 50;
const ENDINGS = ['', '.mjs', '.js', '.ts', '.mts', '.cjs', '.json', '/index.mjs', '/index.js'];
/** It matches text and does not parse JavaScript. A text that only resembles an import costs one look at the disk. */
const RELATIVE = /["'](\.{1,2}\/[^"'\n]+)["']/g;

/** Whether a file imports others. */
export const hasNeighbours = (code: string): boolean => code.match(RELATIVE) !== null;

/** Reads a component's file and its relative imports from disk. The bundler reports missing files, with the line of the import. */
export async function localFiles(entry: string): Promise<ComponentFiles> {
  const codes = new Map<string, string>();
  const waiting = [resolve(entry)];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (codes.has(file)) continue;
    const code = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (codes.size === 0) throw error;
      return null;
    });
    if (code === null) continue;
    if (codes.size >= MOST_FILES) throw new Invalid(`the component has more than ${MOST_FILES} files`);
    codes.set(file, code);
    for (const [, path] of code.matchAll(RELATIVE)) {
      for (const ending of ENDINGS) waiting.push(resolve(dirname(file), path! + ending));
    }
  }
  const files = [...codes.keys()];
  const root = files.map(dirname).reduce(common);
  const name = (file: string) => relative(root, file).split(sep).join('/');
  return { entry: name(files[0]!), files: Object.fromEntries(files.map((file) => [name(file), codes.get(file)!])) };
}

function common(a: string, b: string): string {
  const [left, right] = [a.split(sep), b.split(sep)];
  const end = left.findIndex((part, index) => part !== right[index]);
  return end === -1 ? a : left.slice(0, end).join(sep) || sep;
}
