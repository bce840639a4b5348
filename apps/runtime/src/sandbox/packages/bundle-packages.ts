import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundlerOutOfMemory } from '../bundle-files.js';
import { closedBuiltIns } from '../guest/built-ins.js';
import type { Jail } from '../jail/jail.js';
import { runInJail, type WithMemory } from '../jail/run-in-jail.js';
import { ComponentRejected, type PackageImport } from '../sandbox.js';
import type { InstallLimits } from './install-limits.js';

const folder = '.bundling';
const mostAttempts = 4;

/** An import of the component, and what it is called among the installed packages. */
export interface ResolvedImport extends PackageImport {
  installed: string;
}

/** An import of a package that cannot be used, in a component that can do without it. */
export interface RefusedImport extends PackageImport {
  reason: string;
}

export interface BundleTools {
  jail: Jail;
  uid: number;
  withMemory: WithMemory;
  limits: InstallLimits;
  /** The folder that contains `node_modules` */
  work: string;
}

/**
 * Bundles the installed packages into one ES module, as `PackageBundle` describes it. Modules that nothing in the jail can load (`child_process`) and
 * optional packages that are absent become modules whose functions throw: most packages import some that they use in special cases only.
 * @param until when the caller stops waiting, in ms since the epoch
 * @throws ComponentRejected
 */
export async function bundlePackages(
  imports: ResolvedImport[],
  refused: RefusedImport[],
  tools: BundleTools,
  until: number,
): Promise<string> {
  const { work, limits } = tools;
  await mkdir(join(work, folder));
  await writeFile(join(work, folder, 'entry.mjs'), [entryOf(imports), ...refused.map(refusing)].join('\n'));
  for (const name of closedBuiltIns) await writeFile(join(work, folder, fileOf(name)), await closedModule(name));
  const absent: string[] = [];
  for (let attempt = 1; ; attempt++) {
    const { exit, output, errors } = await bundle(tools, until, absent);
    if (exit === '0') return output;
    if (exit === 'output')
      throw new ComponentRejected(`The packages have more than ${limits.bundleBytes >> 20} MB of code; import smaller ones`);
    if (exit === 'time' || exit === 'cpu') throw new ComponentRejected('The packages could not be bundled in time');
    if (bundlerOutOfMemory.test(errors))
      throw new ComponentRejected('The packages need too much memory to be bundled; import smaller ones');
    const found = [...errors.matchAll(/\[ERROR\] Could not resolve "([^"./][^"]*)"/g)].map((match) => match[1]!);
    const unresolved = [...new Set(found)].filter((name) => !absent.includes(name) && !imports.some(({ installed }) => installed === name));
    if (unresolved.length === 0 || attempt === mostAttempts)
      throw new ComponentRejected(`The packages cannot be bundled: ${reason(errors, imports)}`);
    for (const name of unresolved) await writeFile(join(work, folder, fileOf(name)), absentModule(name));
    absent.push(...unresolved);
  }
}

function bundle({ work, jail, uid, withMemory, limits }: BundleTools, until: number, absent: string[]) {
  const program = { kind: 'bundler', exchangeDir: work, uid, heapMb: 0 } as const;
  const { exchangePath } = jail.command({ ...program, args: [] });
  const stubs = `${exchangePath}/${folder}`;
  const args = [
    `${stubs}/entry.mjs`,
    '--bundle',
    '--format=esm',
    '--platform=node',
    '--target=node24',
    '--charset=utf8',
    '--legal-comments=none',
    '--minify-whitespace',
    '--define:__dirname="/package"',
    '--define:__filename="/package/index.js"',
    '--define:process.env.NODE_ENV="production"',
    ...closedBuiltIns.flatMap((name) =>
      [name, ...(name.startsWith('node:') ? [] : [`node:${name}`])].map((each) => alias(each, stubs, name)),
    ),
    ...absent.map((name) => alias(name, stubs, name)),
    '--color=false',
    '--log-level=error',
    '--log-limit=0',
  ];
  return withMemory(until, (signal) =>
    runInJail(jail, { ...program, args }, { wallMs: until - Date.now(), cpuMs: limits.cpuMs, signal }, limits.bundleBytes),
  );
}

const alias = (from: string, stubs: string, name: string): string => `--alias:${from}=${stubs}/${fileOf(name)}`;

/** `import` evaluates the package with the component; `require` when it is called. */
function entryOf(imports: ResolvedImport[]): string {
  return imports
    .map(({ specifier, kind, installed }, index) => {
      const [from, name] = [JSON.stringify(installed), JSON.stringify(`${kind} ${specifier}`)];
      return kind === 'import'
        ? `import * as m${index} from ${from};\nexport { m${index} as ${name} };`
        : `const m${index} = () => require(${from});\nexport { m${index} as ${name} };`;
    })
    .join('\n');
}

/** Throws when it is imported or required, as Node does if a package is absent. */
const refusing = ({ kind, specifier, reason }: RefusedImport, index: number): string =>
  `const r${index} = () => { throw Object.assign(new Error(${JSON.stringify(reason)}), { code: 'MODULE_NOT_FOUND' }); };\n` +
  `export { r${index} as ${JSON.stringify(`${kind} ${specifier}`)} };`;

/** A hash, because packages choose the names of absent ones, and a file system limits the length of a file's name. */
const fileOf = (name: string): string => `${createHash('sha256').update(name).digest('hex')}.cjs`;

/** Functions that packages call while they are loaded, and that are harmless. */
const harmless: Record<string, string> = {
  'module.createRequire': '() => globalThis.require',
  'worker_threads.markAsUncloneable': '() => {}',
  'worker_threads.markAsUntransferable': '() => {}',
};

/** With the names of the real module, so that each can be imported: its constants, and functions that throw. */
async function closedModule(name: string): Promise<string> {
  // Loading these warns: they are deprecated or experiments
  const isQuiet = !/^(?:_.*|sys|domain|wasi|trace_events|node:sqlite)$/.test(name);
  const real = (isQuiet ? await import(name.startsWith('node:') ? name : `node:${name}`) : {}) as Record<string, unknown>;
  const names = Object.keys(real).filter((key) => key !== 'default' && /^[A-Za-z_$][\w$]*$/.test(key));
  const refusing = (key: string) => `function () { throw new Error(${JSON.stringify(`${name}.${key} is not available to components`)}); }`;
  return names
    .map((key) => {
      const value = real[key];
      const isConstant = value === null || ['string', 'number', 'boolean'].includes(typeof value) || Array.isArray(value);
      const other = isConstant ? JSON.stringify(value) : '{}';
      return `exports.${key} = ${harmless[`${name}.${key}`] ?? (typeof value === 'function' ? refusing(key) : other)};`;
    })
    .join('\n');
}

function absentModule(name: string): string {
  const message = JSON.stringify(`The optional package "${name}" is not installed`);
  return `const absent = function () { throw new Error(${message}); };
module.exports = new Proxy(absent, { get: (target, key) => (typeof key === 'symbol' || key === '__esModule' || key === 'prototype' ? target[key] : absent) });`;
}

/** The bundler's first error, without the places of our folders. */
function reason(errors: string, imports: ResolvedImport[]): string {
  const missing = imports.find(({ installed }) => errors.includes(`Could not resolve "${installed}"`));
  if (missing) return `"${missing.specifier}" does not exist in its package${missing.line === null ? '' : ` (line ${missing.line})`}`;
  const message = /\[ERROR\] (.+)/.exec(errors)?.[1] ?? errors.trim().split('\n')[0] ?? '';
  const place = /^\s+\S*?node_modules\/(.+):\d+:\d+:$/m.exec(errors)?.[1];
  return place ? `${message} (${place})` : message;
}
