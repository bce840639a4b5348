import { createHash } from 'node:crypto';
import { chmod, constants, copyFile, link, lstat, mkdir, open, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { bundleGuest, type BundledGuest } from './bundle-guest.js';
import { confineProgram } from './confine.js';
import { jailPrograms, type JailProgram } from './jail-programs.js';
import { mostWritable } from './jail.js';
import { installedPackage, packageClosure, type CuratedPackage } from './package-closure.js';
import { seccompFilter } from './seccomp-filter.js';
import { writablePath } from './writable-path.js';

const asBoolean = [() => true, () => false] as const;

/** Everything that a jail's root is made of. */
export interface JailRootParts {
  programs: JailProgram[];
  guest: BundledGuest;
  packages: CuratedPackage[];
  /** npm itself, which installs other packages */
  npm: CuratedPackage;
  /** null: there is no filter for this processor */
  filter: Buffer | null;
}

export async function collectJailRootParts(modules: string[]): Promise<JailRootParts> {
  const [programs, guest, packages, npm] = await Promise.all([
    jailPrograms(),
    bundleGuest(),
    packageClosure(modules),
    installedPackage('npm'),
  ]);
  return { programs, guest, packages, npm, filter: seccompFilter() };
}

/** Depends on contents alone: the files of a container image may have other times than at its build. */
export async function fingerprint({ programs, guest, packages, npm, filter }: JailRootParts): Promise<string> {
  const hash = createHash('sha256');
  for (const { name, file, libraries } of programs) {
    hash.update(JSON.stringify([name, libraries]));
    for (const path of [file, ...libraries]) hash.update(await beginningOf(path));
  }
  hash.update(JSON.stringify([guest, [...packages, npm].map(({ to, version }) => [to, version])]));
  hash.update(filter ?? 'none');
  hash.update(confineProgram(filter) ?? 'none');
  return hash.digest('hex').slice(0, 16);
}

/** The size and the first MiB: it has the headers and the build id, which differ between any two builds. All of Node would take 0.2 s. */
async function beginningOf(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, 1 << 20)), 0);
    return `${size} ${createHash('sha256').update(buffer.subarray(0, bytesRead)).digest('hex')}`;
  } finally {
    await file.close();
  }
}

export async function assembleJailRoot(target: string, { programs, guest, packages, npm, filter }: JailRootParts): Promise<void> {
  const root = join(target, 'root');
  const mountPoints = Array.from({ length: mostWritable }, (_, index) => writablePath(index).slice(1));
  for (const folder of ['bin', 'runner/node_modules', 'tmp', 'exchange', 'dev', ...mountPoints])
    await mkdir(join(root, folder), { recursive: true });
  for (const { name, file, libraries } of programs) {
    await placeFile(await realpath(file), join(root, 'bin', name));
    for (const library of libraries) {
      const copy = join(root, resolve('/', library));
      await mkdir(dirname(copy), { recursive: true });
      await copyFile(library, copy);
    }
  }
  await writeFile(join(root, 'runner', 'runner.cjs'), guest.runner);
  await writeFile(join(root, 'runner', 'probe.cjs'), guest.probe);
  await writeFile(join(root, 'runner', 'npm.cjs'), guest.npm);
  await writeFile(join(root, 'runner', 'outline.cjs'), guest.outline);
  // Node looks for both; if Landlock returned EACCES instead of ENOENT, it would not start
  await writeFile(join(root, 'runner', 'package.json'), '{}');
  await writeFile(join(root, 'runner', 'openssl.cnf'), '');
  for (const { from, to } of packages) await placePackage(from, join(root, 'runner', to));
  // Outside of node_modules, where components could import it; its own packages are inside it
  await placePackage(npm.from, join(root, 'runner', 'npm'), true);
  if (filter) await writeFile(join(target, 'seccomp.bpf'), filter);
  const confine = confineProgram(filter);
  if (confine) await writeFile(join(root, 'bin', 'confine'), confine, { mode: 0o755 });
  await makeReadable(target);
}

/**
 * The files of a package, without those that never run.
 * @param whole with the packages inside it, which otherwise have separate entries
 */
async function placePackage(from: string, to: string, whole = false): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory() && (whole || entry.name !== 'node_modules')) await placePackage(source, copy, whole);
    else if (entry.isFile() && !/\.(d\.[cm]?ts|map|md)$/.test(entry.name)) await placeFile(source, copy);
  }
}

/** Links the file where possible, else copies it: all files together have 150 MB, and each change of the guest makes a new root. */
async function placeFile(source: string, copy: string): Promise<void> {
  // A hard-linked file has another name elsewhere, so its mode must not change
  const { mode } = await stat(source);
  const linked = mode === safeMode(mode) && (await link(source, copy).then(...asBoolean));
  if (!linked) await copyFile(source, copy, constants.COPYFILE_FICLONE);
}

/** Lets everyone read and only the owner write, whatever the umask: the jailed processes run as users that own nothing. */
async function makeReadable(path: string): Promise<void> {
  const info = await lstat(path);
  if (info.isSymbolicLink()) return;
  if (info.mode !== safeMode(info.mode)) await chmod(path, safeMode(info.mode) & 0o777);
  if (info.isDirectory()) for (const entry of await readdir(path)) await makeReadable(join(path, entry));
}

function safeMode(mode: number): number {
  return (mode | (mode & 0o100 ? 0o555 : 0o444)) & ~0o022;
}
