import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { CallerGone } from '#limits';
import { MODULE_ENDINGS } from '#relative-imports';
import { type ComponentFiles, ComponentRejected, SandboxUnavailable } from './sandbox.js';
import type { Jail } from './jail/jail.js';
import { runInJail, type WithMemory } from './jail/run-in-jail.js';

export interface BundleSettings {
  jail: Jail;
  uid: number;
  exchangeDir: string;
  cpuMs: number;
  withMemory: WithMemory;
  /** When the caller stops waiting, in ms since the epoch */
  until: number;
}

const folder = 'bundled';
const mostBytes = 4 << 20;

/**
 * Bundles a component and its relative imports into one module of the kind that its entry is. The bundler runs in the jail, because it reads untrusted
 * code. Imports of packages are kept, and the guest resolves them from its list. It ends with a source map, so that errors name the author's lines.
 * @throws ComponentRejected, CallerGone
 */
export async function bundleFiles({ entry, files }: ComponentFiles, settings: BundleSettings): Promise<string> {
  const { exchangeDir } = settings;
  for (const [path, code] of Object.entries(files)) {
    if (!isInside(path)) throw new ComponentRejected(`"${path}" is not a path below the component's folder`);
    await write(join(exchangeDir, folder, path), code).catch((error: NodeJS.ErrnoException) => {
      const why = unwritable[error.code ?? ''];
      throw why === undefined ? error : new ComponentRejected(`"${path.slice(0, 300)}" cannot be a file of the component: ${why}`);
    });
  }
  const module = await bundled(entry, 'esm', settings);
  // An ES module is strict. CommonJS is not: it may assign to variables that it does not declare
  return commonJsEntry.test(module) ? bundled(entry, 'cjs', settings) : module;
}

async function write(file: string, code: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, code);
}

/** The paths are the author's: URLs can be files and folders at the same time, and longer than a file's path. */
const unwritable: Record<string, string> = {
  ...{ EEXIST: 'a folder of it is another file', ENOTDIR: 'a folder of it is another file', EISDIR: 'it is also a folder' },
  ENAMETOOLONG: 'its path is too long',
};

/** The bundler's message when it has reached its limit of memory. */
export const bundlerOutOfMemory = /^(?:fatal error: .*(?:out of memory|cannot allocate memory)|SIGSEGV)/m;

/** How the bundler ends an ES module whose entry is CommonJS. */
const commonJsEntry = /\nexport default require_[\w$]+\(\);\n(?:\/\/# sourceMappingURL=.*\n?)?$/;

async function bundled(entry: string, format: 'esm' | 'cjs', settings: BundleSettings): Promise<string> {
  const { jail, uid, exchangeDir, cpuMs, withMemory, until } = settings;
  const command = { kind: 'bundler', exchangeDir, uid, heapMb: 0 } as const;
  const { exchangePath } = jail.command({ ...command, args: [] });
  const program = { ...command, args: bundlerArguments(`${exchangePath}/${folder}/${entry}`, format) };
  const { exit, output, errors } = await withMemory(until, (signal) =>
    runInJail(jail, program, { wallMs: until - Date.now(), cpuMs, signal }, mostBytes),
  );
  if (exit === '0') return output;
  if (exit === 'time') throw new CallerGone('the component and its relative imports could not be bundled in time');
  if (exit === 'cpu')
    throw new ComponentRejected(`The component and its relative imports could not be bundled within ${cpuMs} ms of CPU time`);
  if (exit === 'output') throw new ComponentRejected(`The component and its relative imports have more than ${mostBytes} bytes in total`);
  if (bundlerOutOfMemory.test(errors))
    throw new ComponentRejected('The component and its relative imports need too much memory to be bundled');
  throw rejection(errors) ?? new SandboxUnavailable(`The bundler ended with ${exit}: ${errors.trim().split('\n')[0] ?? ''}`);
}

function bundlerArguments(entry: string, format: 'esm' | 'cjs'): string[] {
  return [
    entry,
    '--bundle',
    `--format=${format}`,
    '--platform=node',
    '--target=node24',
    '--packages=external',
    `--resolve-extensions=${MODULE_ENDINGS.join()}`,
    // A CommonJS neighbour's `require` finds the packages of this component
    ...(format === 'esm' ? ['--banner:js=const require = globalThis[Symbol.for("sluice.require")](import.meta.url);'] : []),
    '--charset=utf8',
    '--sourcemap=inline',
    '--sources-content=false',
    '--color=false',
    '--log-level=error',
    '--log-limit=1',
  ];
}

/** The bundler's first error with the place in the author's file: `[ERROR] Could not resolve "./x"`, then `../exchange/bundled/a/b.mjs:1:20:`. */
function rejection(errors: string): ComponentRejected | null {
  const message = /\[ERROR\] (.+)/.exec(errors)?.[1];
  if (!message) return null;
  const [, path, line] = new RegExp(`^\\s+\\S*?/?${folder}/(.+):(\\d+):\\d+:$`, 'm').exec(errors) ?? [];
  return path ? new ComponentRejected(`${message} (${path}, line ${line})`, Number(line), path) : new ComponentRejected(message);
}

function isInside(path: string): boolean {
  return path !== '' && !path.includes('\0') && !posix.isAbsolute(path) && posix.normalize(path) === path && !path.startsWith('..');
}
