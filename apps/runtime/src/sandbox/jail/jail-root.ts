import { createHash, randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  constants,
  copyFile,
  cp,
  link,
  lstat,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { bundleGuest, type BundledGuest } from './bundle-guest.js';
import { jailPrograms, type JailProgram } from './jail-programs.js';
import { packageClosure, type CuratedPackage } from './package-closure.js';
import { seccompFilter } from './seccomp-filter.js';

const oldestNode = 24;
const unusedMs = 24 * 3600 * 1000;
const asBoolean = [() => true, () => false] as const;

/** The only directory that a jailed process sees, and the seccomp filter beside it. */
export interface JailRoot {
  /** `/bin` with node and the bundler, their libraries, `/runner` with the guest and the curated packages; nothing else. */
  dir: string;
  /** null: there is no filter for this processor */
  seccompFile: string | null;
}

/**
 * Builds the root once per combination of Node, guest and packages, below `parent`, and finds it there at the next start (some 30 ms). Two that
 * build at a time do not meet: each builds beside, and the first to move it in place wins.
 */
export async function buildJailRoot(parent: string, modules: string[]): Promise<JailRoot> {
  if (Number(process.versions.node.split('.')[0]) < oldestNode)
    throw new Error(`Components need Node ${oldestNode}; this is ${process.version}`);
  const programs = await jailPrograms();
  const guest = await bundleGuest();
  const packages = await packageClosure(modules);
  const name = `jail-${await fingerprint(programs, guest, packages)}`;
  const dir = join(parent, name);
  if (!(await isOurs(dir))) {
    await removeOldRoots(parent);
    const building = `${dir}.${randomBytes(4).toString('hex')}`;
    try {
      await assemble(building, programs, guest, packages);
      // What is there and not ours is not used; what is ours has been put there meanwhile, and then this fails
      if (!(await isOurs(dir))) await rm(dir, { recursive: true, force: true });
      await rename(building, dir);
    } catch (error) {
      await rm(building, { recursive: true, force: true });
      if (!(await isOurs(dir))) throw error;
    }
  }
  // The sign for `removeOldRoots` that it is in use
  await utimes(dir, new Date(), new Date());
  const seccompFile = join(dir, 'seccomp.bpf');
  return { dir: join(dir, 'root'), seccompFile: (await exists(seccompFile)) ? seccompFile : null };
}

async function fingerprint(programs: JailProgram[], guest: BundledGuest, packages: CuratedPackage[]): Promise<string> {
  const hash = createHash('sha256');
  for (const { name, file } of programs) {
    const { size, mtimeMs } = await stat(file);
    hash.update(JSON.stringify([name, size, mtimeMs]));
  }
  hash.update(JSON.stringify([guest, packages.map(({ to, version }) => [to, version])]));
  hash.update(seccompFilter() ?? 'none');
  return hash.digest('hex').slice(0, 16);
}

async function assemble(target: string, programs: JailProgram[], guest: BundledGuest, packages: CuratedPackage[]): Promise<void> {
  const root = join(target, 'root');
  for (const folder of ['bin', 'runner/node_modules', 'tmp', 'exchange', 'dev']) await mkdir(join(root, folder), { recursive: true });
  for (const { name, file, libraries } of programs) {
    await placeProgram(file, join(root, 'bin', name));
    for (const library of libraries) {
      const copy = join(root, resolve('/', library));
      await mkdir(dirname(copy), { recursive: true });
      await copyFile(library, copy);
    }
  }
  await writeFile(join(root, 'runner', 'runner.cjs'), guest.runner);
  await writeFile(join(root, 'runner', 'probe.cjs'), guest.probe);
  // Node looks for both; where Landlock answers EACCES instead of ENOENT it would not start
  await writeFile(join(root, 'runner', 'package.json'), '{}');
  await writeFile(join(root, 'runner', 'openssl.cnf'), '');
  for (const { from, to } of packages)
    await cp(from, join(root, 'runner', to), { recursive: true, filter: (path) => isNeeded(from, path) });
  const filter = seccompFilter();
  if (filter) await writeFile(join(target, 'seccomp.bpf'), filter);
  await makeReadable(target);
}

/** A second name for the same file where that is possible: Node has 120 MB, and each change of the guest makes a new root. */
async function placeProgram(file: string, copy: string): Promise<void> {
  const source = await realpath(file);
  const isReadable = ((await stat(source)).mode & 0o555) === 0o555;
  const linked = isReadable && (await link(source, copy).then(...asBoolean));
  if (!linked) await copyFile(source, copy, constants.COPYFILE_FICLONE);
}

function isNeeded(packageRoot: string, path: string): boolean {
  const inside = relative(packageRoot, path);
  return !inside.split(sep).includes('node_modules') && !/\.(d\.[cm]?ts|map|md)$/.test(basename(path));
}

/** Everyone may read, nobody else may write: the processes run as users that own nothing. The umask of whoever started us must not matter. */
async function makeReadable(path: string): Promise<void> {
  const { mode, ...info } = await lstat(path).then((stats) => ({
    mode: stats.mode & 0o777,
    isLink: stats.isSymbolicLink(),
    isDirectory: stats.isDirectory(),
  }));
  if (info.isLink) return;
  const needed = info.isDirectory || mode & 0o100 ? 0o555 : 0o444;
  // A file with a second name elsewhere is already as it must be, and its mode is not ours to change
  if ((mode & needed) !== needed || mode & 0o022) await chmod(path, (mode | needed) & ~0o022);
  if (info.isDirectory) for (const entry of await readdir(path)) await makeReadable(join(path, entry));
}

/** Roots of earlier versions that nobody has started from for a day. */
async function removeOldRoots(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const dir = join(parent, name);
    const { mtimeMs } = await stat(dir).catch(() => ({ mtimeMs: Infinity }));
    if (name.startsWith('jail-') && Date.now() - mtimeMs > unusedMs) await rm(dir, { recursive: true, force: true });
  }
}

/** A root that is complete (it is moved in place when it is) and that nobody else could have put there. */
async function isOurs(dir: string): Promise<boolean> {
  const info = await lstat(dir).catch(() => null);
  if (!info?.isDirectory()) return false;
  return process.getuid === undefined || (info.uid === process.getuid() && (info.mode & 0o022) === 0);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(...asBoolean);
}
