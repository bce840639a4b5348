import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { assembleJailRoot } from './assemble-jail-root.js';
import { collectJailRootParts, exists, fingerprint, type JailRootParts } from './jail-root-parts.js';

const oldestNode = 24;
const unusedMs = 24 * 3600 * 1000;
const touchMs = 3600 * 1000;
/** Not in the temporary folder, from which many systems remove files that have not been read for ten days. Only root can create it. */
const rootsParent = '/var/lib/sluice-jail';

/** This machine cannot have a root for jails. It extends no error of a library: the image builds the root with the files of the sandbox alone. */
export class NoJailRoot extends Error {
  override readonly name = 'NoJailRoot';
}

/** The only directory that a jailed process can see, and the seccomp filters beside it. */
export interface JailRoot {
  /** `/bin` with node and the bundler, their libraries, `/runner` with the guest and the curated packages; nothing else. */
  dir: string;
  /** null: there is no filter for this processor */
  seccompFile: string | null;
  /** For programs that share the files of this machine */
  strictSeccompFile: string | null;
  /** Whether `/bin/confine` and `/bin/confine-strict` exist. Only some processors are supported. */
  confines: boolean;
}

/**
 * Returns a root for this Node, guest and set of packages: a prebuilt one if it exists (the container image has one), otherwise one in the
 * data folder, which is built first if necessary. With a prebuilt root, nothing is written.
 * @param prebuiltDirs folders that hold prebuilt roots; folders that do not exist are skipped
 */
export async function openJailRoot(prebuiltDirs: string[], dataDir: string, modules: string[]): Promise<JailRoot> {
  const parts = await partsForThisNode(modules);
  const name = await rootName(parts);
  for (const parent of prebuiltDirs) if (await isTrusted(join(parent, name))) return jailRootIn(join(parent, name));
  return buildUnlessThere(await jailRootParent(dataDir), name, parts);
}

/**
 * Builds the root below `parent` once per combination of Node, guest and packages; the next start finds it there (about 30 ms). Processes that build at
 * the same time use separate temporary folders, and the first to rename its folder wins.
 */
export async function buildJailRoot(parent: string, modules: string[]): Promise<JailRoot> {
  const parts = await partsForThisNode(modules);
  await mkdir(parent, { recursive: true });
  return buildUnlessThere(parent, await rootName(parts), parts);
}

async function partsForThisNode(modules: string[]): Promise<JailRootParts> {
  if (Number(process.versions.node.split('.')[0]) < oldestNode)
    throw new NoJailRoot(`Components need Node ${oldestNode}; this is ${process.version}`);
  return collectJailRootParts(modules);
}

async function rootName(parts: JailRootParts): Promise<string> {
  return `jail-${await fingerprint(parts)}`;
}

async function buildUnlessThere(parent: string, name: string, parts: JailRootParts): Promise<JailRoot> {
  const dir = join(parent, name);
  if (!(await isTrusted(dir))) {
    await removeOldRoots(parent);
    const building = `${dir}.${randomBytes(4).toString('hex')}`;
    try {
      await assembleJailRoot(building, parts);
      // A folder that another user created is replaced. If another of our processes has put its root there by now, `rename` fails. Nothing else
      // is removed: a removal that begins while there is nothing yet would delete the root that another process puts there.
      if ((await exists(dir)) && !(await isTrusted(dir))) await rm(dir, { recursive: true, force: true });
      await rename(building, dir);
    } catch (error) {
      await rm(building, { recursive: true, force: true });
      if (!(await isTrusted(dir)))
        throw isSystemError(error) ? new NoJailRoot(`The root of the jail cannot be built: ${error.message}`) : error;
    }
  }
  await touch(dir);
  return jailRootIn(dir);
}

/** Shows `removeOldRoots` that the root is in use. A root that cannot be written to cannot be removed either. */
const touch = (dir: string): Promise<void> => utimes(dir, new Date(), new Date()).catch(() => undefined);

/** Keeps the root from being removed by a start of another version, until the returned function is called. */
export function keepJailRoot({ dir }: JailRoot): () => void {
  const timer = setInterval(() => void touch(dirname(dir)), touchMs).unref();
  return () => clearInterval(timer);
}

/** Such as a full or read-only file system. */
const isSystemError = (error: unknown): error is NodeJS.ErrnoException => (error as NodeJS.ErrnoException).syscall !== undefined;

async function jailRootIn(dir: string): Promise<JailRoot> {
  const ifExists = async (file: string) => ((await exists(file)) ? file : null);
  return {
    dir: join(dir, 'root'),
    seccompFile: await ifExists(join(dir, 'seccomp.bpf')),
    strictSeccompFile: await ifExists(join(dir, 'seccomp-strict.bpf')),
    confines: await exists(join(dir, 'root', 'bin', 'confine')),
  };
}

/** Removes roots of earlier versions that have not been used for a day. */
async function removeOldRoots(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const dir = join(parent, name);
    const { mtimeMs } = await stat(dir).catch(() => ({ mtimeMs: Infinity }));
    if (name.startsWith('jail-') && Date.now() - mtimeMs > unusedMs) await rm(dir, { recursive: true, force: true });
  }
}

/** Whether a root exists that only this user or root can have put there. It is complete, because only complete roots are renamed to this path. */
async function isTrusted(dir: string): Promise<boolean> {
  const info = await lstat(dir).catch(() => null);
  if (!info?.isDirectory()) return false;
  const owners = [0, process.getuid?.()];
  return process.getuid === undefined || (owners.includes(info.uid) && (info.mode & 0o022) === 0);
}

/**
 * Returns the folder for the jail's root: in the data folder, unless a folder above it (`/root`, a home) is closed to other users. If we are root, jailed
 * processes run as other users, so the root is then in a folder of the system.
 * @throws NoJailRoot when the folder cannot be created
 */
export async function jailRootParent(dataDir: string): Promise<string> {
  const wanted = resolve(dataDir, 'sandbox');
  await makeFolder(wanted);
  if (process.getuid?.() !== 0) return wanted;
  await openToAll(wanted);
  if (await isOpenToAll(wanted)) return wanted;
  await makeFolder(rootsParent);
  const info = await lstat(rootsParent);
  if (!info.isDirectory() || info.uid !== 0 || (info.mode & 0o022) !== 0) throw new NoJailRoot(`${rootsParent} belongs to another user`);
  await openToAll(rootsParent);
  return rootsParent;
}

/** A restrictive umask, now or at an earlier start, closes the folders that root creates. In a read-only file system, they stay as they are. */
const openToAll = (dir: string): Promise<void> => chmod(dir, 0o755).catch(() => undefined);

async function isOpenToAll(dir: string): Promise<boolean> {
  for (let path = dir; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((error: Error) => {
    throw new NoJailRoot(`The jail needs a writable folder (SLUICE_DATA_DIR): ${error.message}`);
  });
}
