import { chmod, constants, copyFile, link, lstat, mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { writablePath } from './command-line.js';
import { confineProgram } from './confine.js';
import { mostWritable } from './jail.js';
import type { JailRootParts } from './jail-root-parts.js';

export async function assembleJailRoot(
  target: string,
  { programs, guest, packages, npm, filter, strictFilter }: JailRootParts,
): Promise<void> {
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
  // Node looks for both files. Without them, Landlock would return EACCES instead of ENOENT, and Node would not start
  await writeFile(join(root, 'runner', 'package.json'), '{}');
  await writeFile(join(root, 'runner', 'openssl.cnf'), '');
  for (const { from, to } of packages) await placePackage(from, join(root, 'runner', to));
  // Outside of node_modules, where components could import it; its own packages are inside it
  await placePackage(npm.from, join(root, 'runner', 'npm'), true);
  await placeFilter(filter, join(target, 'seccomp.bpf'), join(root, 'bin', 'confine'));
  await placeFilter(strictFilter, join(target, 'seccomp-strict.bpf'), join(root, 'bin', 'confine-strict'));
  await makeReadable(target);
}

/** Both ways to apply it: for bwrap and setpriv(1), and a program that applies it to itself. */
async function placeFilter(filter: Buffer | null, file: string, program: string): Promise<void> {
  if (filter) await writeFile(file, filter);
  const confine = confineProgram(filter);
  if (confine) await writeFile(program, confine, { mode: 0o755 });
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

/** Creates a hard link, or a copy where links are impossible. The files have 150 MB in total, and each change of the guest makes a new root. */
async function placeFile(source: string, copy: string): Promise<void> {
  // A hard link shares its mode with the original, so the mode must not change
  const { mode } = await stat(source);
  const linked =
    mode === safeMode(mode) &&
    (await link(source, copy).then(
      () => true,
      () => false,
    ));
  if (!linked) await copyFile(source, copy, constants.COPYFILE_FICLONE);
}

/** Lets everyone read and only the owner write, regardless of the umask. Jailed processes run as users that own no files. */
async function makeReadable(path: string): Promise<void> {
  const info = await lstat(path);
  if (info.isSymbolicLink()) return;
  if (info.mode !== safeMode(info.mode)) await chmod(path, safeMode(info.mode) & 0o777);
  if (info.isDirectory()) for (const entry of await readdir(path)) await makeReadable(join(path, entry));
}

function safeMode(mode: number): number {
  return (mode | (mode & 0o100 ? 0o555 : 0o444)) & ~0o022;
}
