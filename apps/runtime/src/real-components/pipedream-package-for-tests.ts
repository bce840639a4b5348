import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { ComponentFiles } from '../sandbox/sandbox.js';

/**
 * npm `pipedream@0.2.2` (MIT), as npm packs it: public components that users run. It is not a devDependency, because npm would also install the 750
 * packages (466 MB) that these components depend on, and no test uses any of them.
 */
const archive = join(process.cwd(), 'apps/runtime/src/real-components/pipedream-0.2.2.tgz');
const block = 512;
const isCode = (path: string): boolean => /\.(m?js|ts|json)$/.test(path);

/** The code below `components/`, by its path there. */
export function pipedreamFiles(): Record<string, string> {
  const tar = gunzipSync(readFileSync(archive));
  const files: Record<string, string> = {};
  for (let at = 0; at < tar.length && tar[at] !== 0;) {
    const field = (start: number, length: number) => /^[^\0]*/.exec(tar.toString('utf8', at + start, at + start + length))![0];
    const path = posix.join(field(345, 155), field(0, 100));
    const size = parseInt(field(124, 12), 8);
    const [, inside] = /^package\/components\/(.+)$/.exec(path) ?? [];
    if (inside !== undefined && isCode(inside)) files[inside] = tar.toString('utf8', at + block, at + block + size);
    at += block + Math.ceil(size / block) * block;
  }
  return files;
}

/** Every file in a folder `sources`, including files that others share. */
export const sourcesOf = (files: Record<string, string>): string[] =>
  Object.keys(files)
    .filter((path) => path.includes('/sources/') && /\.m?js$/.test(path))
    .sort();

/** An entry with the files that it can import: its app's folder, or all folders if it imports from outside. */
export function withNeighbours(entry: string, files: Record<string, string>): ComponentFiles {
  const app = `${entry.split('/')[0]}/`;
  const near = Object.fromEntries(Object.entries(files).filter(([path]) => path.startsWith(app)));
  const reachesOut = Object.entries(near).some(([path, code]) =>
    [...code.matchAll(/(?:require\(|from )\s*["'](\.[^"']*)["']/g)].some(([, to]) => !posix.join(posix.dirname(path), to!).startsWith(app)),
  );
  return { entry, files: reachesOut ? files : near };
}
