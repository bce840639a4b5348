import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './find-program.js';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** A program of the jail's /bin. */
export interface JailProgram {
  /** Name in /bin */
  name: string;
  file: string;
  libraries: string[];
}

/** Everything that is ever started in the jail, as far as this machine has it. */
export async function jailPrograms(): Promise<JailProgram[]> {
  const files: [string, string | null][] = [
    ['node', process.execPath],
    ['esbuild', bundlerFile()],
    // The last steps of a jail without bwrap run inside of it
    ['setpriv', findProgram('setpriv')],
    ['prlimit', findProgram('prlimit')],
  ];
  const found = files.filter((entry): entry is [string, string] => entry[1] !== null);
  return Promise.all(found.map(async ([name, file]) => ({ name, file, libraries: await sharedLibraries(file) })));
}

/** esbuild's own binary: what its package puts on the PATH is a script for a Node of any version. */
export function bundlerFile(): string {
  return require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`, {
    paths: [dirname(require.resolve('esbuild/package.json'))],
  });
}

/** Paths as the program's loader will look for them. A static program, or a system without ldd, has none. */
async function sharedLibraries(file: string): Promise<string[]> {
  const { stdout } = await run('ldd', [file]).catch(() => ({ stdout: '' }));
  return [...new Set(stdout.match(/\/[^\s:()]+/g) ?? [])].filter((path) => path !== file);
}
