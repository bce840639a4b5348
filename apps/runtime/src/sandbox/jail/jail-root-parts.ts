import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, open, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './command-line.js';
import { confineProgram } from './confine.js';
import { seccompFilter } from './seccomp-filter.js';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** The contents of a jail's root. */
export interface JailRootParts {
  programs: JailProgram[];
  guest: BundledGuest;
  packages: CuratedPackage[];
  /** npm itself, which installs other packages */
  npm: CuratedPackage;
  /** null: this processor is not supported */
  filter: Buffer | null;
  /** For programs that share the files of this machine */
  strictFilter: Buffer | null;
}

export async function collectJailRootParts(modules: string[]): Promise<JailRootParts> {
  const [programs, guest, packages, npm] = await Promise.all([
    jailPrograms(),
    bundleGuest(),
    packageClosure(modules),
    installedPackage('npm'),
  ]);
  return { programs, guest, packages, npm, filter: seccompFilter(), strictFilter: seccompFilter(process.arch, 'shared') };
}

/** Depends only on contents, because the files of a container image may not have the times of its build. */
export async function fingerprint({ programs, guest, packages, npm, filter, strictFilter }: JailRootParts): Promise<string> {
  const hash = createHash('sha256');
  // one for all files: the memory of a large buffer for each would not return to the system
  const buffer = Buffer.alloc(1 << 20);
  for (const { name, file, libraries } of programs) {
    hash.update(JSON.stringify([name, libraries]));
    for (const path of [file, ...libraries]) hash.update(await beginningOf(path, buffer));
  }
  hash.update(JSON.stringify([guest, [...packages, npm].map(({ to, version }) => [to, version])]));
  for (const each of [filter, strictFilter]) {
    hash.update(each ?? 'none');
    hash.update(confineProgram(each) ?? 'none');
  }
  return hash.digest('hex').slice(0, 16);
}

/** The size and what fits into the buffer: in the first MiB, headers and build id differ between any two builds. Reading all of Node would take 0.2 s. */
async function beginningOf(path: string, buffer: Buffer): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return `${size} ${createHash('sha256').update(buffer.subarray(0, bytesRead)).digest('hex')}`;
  } finally {
    await file.close();
  }
}

/** A program of the jail's /bin. */
interface JailProgram {
  /** Name in /bin */
  name: string;
  file: string;
  libraries: string[];
}

/** All programs that are started in the jail, if this machine has them. */
async function jailPrograms(): Promise<JailProgram[]> {
  const files: [string, string | null][] = [
    ['node', process.execPath],
    ['esbuild', bundlerFile()],
    // Without bwrap, the last steps of the jail run inside it
    ['setpriv', findProgram('setpriv')],
    ['prlimit', findProgram('prlimit')],
  ];
  const found = files.filter((entry): entry is [string, string] => entry[1] !== null);
  return Promise.all(found.map(async ([name, file]) => ({ name, file, libraries: await sharedLibraries(file) })));
}

/** esbuild's binary. Its package puts a script on the PATH, which would need another Node. */
function bundlerFile(): string {
  return require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`, {
    paths: [dirname(require.resolve('esbuild/package.json'))],
  });
}

/** The paths of the libraries that the loader looks for. A static program, or a system without ldd, has none. */
async function sharedLibraries(file: string): Promise<string[]> {
  const { stdout } = await run('ldd', [file]).catch(() => ({ stdout: '' }));
  return [...new Set(stdout.match(/\/[^\s:()]+/g) ?? [])].filter((path) => path !== file);
}

/** The programs that run inside the jail, bundled. */
interface BundledGuest {
  runner: string;
  probe: string;
  npm: string;
  outline: string;
}

/** Bundles each program into one CommonJS file, from TypeScript sources or compiled ones, so that it needs no other files of this repository. */
async function bundleGuest(): Promise<BundledGuest> {
  const bundle = async (entry: string) => {
    const folder = join(import.meta.dirname, '..', 'guest');
    const source = join(folder, entry + extname(import.meta.filename));
    const { stdout } = await run(
      bundlerFile(),
      [source, '--bundle', '--platform=node', '--format=cjs', '--target=node24', '--log-level=error'],
      // The bundle names its sources relative to the working directory. A fixed one keeps the bundle equal at every start
      { cwd: folder, maxBuffer: 16 << 20 },
    );
    return stdout;
  };
  const [runner, probe, npm, outline] = await Promise.all(['main', 'probe', 'npm', 'outline'].map(bundle));
  return { runner: runner!, probe: probe!, npm: npm!, outline: outline! };
}

interface CuratedPackage {
  version: string;
  from: string;
  /** The path below the jail's /runner, equal to the one below the project */
  to: string;
}

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

/** The folder of the repository, or of the image, in which the packages for components are installed. */
const INSTALLED = 'component-packages';

/** The curated packages and their dependencies, as npm has installed them. */
export async function packageClosure(names: string[]): Promise<CuratedPackage[]> {
  const found = new Map<string, CuratedPackage>();
  const project = await findProject();
  const visit = async (name: string, importer: string): Promise<void> => {
    const { dir, manifest } = await findPackage(name, importer, project);
    if (found.has(dir)) return;
    found.set(dir, { version: manifest.version, from: dir, to: relative(project, dir) });
    for (const dependency of Object.keys(manifest.dependencies ?? {})) await visit(dependency, dir);
  };
  for (const name of names) await visit(name, project);
  return [...found.values()].sort((a, b) => (a.to < b.to ? -1 : 1));
}

/** A package of that folder, without its dependencies. */
export async function installedPackage(name: string): Promise<CuratedPackage> {
  const project = await findProject();
  const { dir, manifest } = await findPackage(name, project, project);
  return { version: manifest.version, from: dir, to: relative(project, dir) };
}

/** Searches the folders above this file, which may be compiled into `dist/`. */
async function findProject(): Promise<string> {
  for (let above = import.meta.dirname; ; above = dirname(above)) {
    const dir = join(above, INSTALLED);
    if (await exists(join(dir, 'package.json'))) return dir;
    if (above === dirname(above)) throw new Error(`The folder ${INSTALLED} does not exist above ${import.meta.dirname}`);
  }
}

/** Also a link that leads nowhere. */
export const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Searches like Node: `node_modules` of the importer's folder, then of each folder above, up to the project. */
async function findPackage(name: string, importer: string, project: string): Promise<{ dir: string; manifest: Manifest }> {
  for (let above = importer; ; above = dirname(above)) {
    const dir = join(above, 'node_modules', name);
    const manifest = await readFile(join(dir, 'package.json'), 'utf8').catch(() => null);
    if (manifest !== null) return { dir, manifest: JSON.parse(manifest) as Manifest };
    if (above === project) throw new Error(`The package ${name} is not installed: run npm ci --prefix ${INSTALLED}`);
  }
}
