import { lstat, mkdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { SandboxUnavailable } from '../sandbox-unavailable.js';

/**
 * Returns the folder for the jail's root: in the data folder, unless a folder above it (`/root`, a home) is closed to other users. When we are root, the
 * jailed processes run as other users, and the root has to be in the temporary directory, in a folder that nobody else could have made.
 * @throws SandboxUnavailable when the folder cannot be created
 */
export async function jailRootParent(dataDir: string): Promise<string> {
  const wanted = resolve(dataDir, 'sandbox');
  await makeFolder(wanted);
  if (process.getuid?.() !== 0 || (await isOpenToAll(wanted))) return wanted;
  const fallback = join(tmpdir(), `sluice-jail-${process.getuid()}`);
  await makeFolder(fallback);
  const info = await lstat(fallback);
  if (!info.isDirectory() || info.uid !== process.getuid() || (info.mode & 0o022) !== 0)
    throw new SandboxUnavailable(`${fallback} belongs to another user`);
  return fallback;
}

async function isOpenToAll(dir: string): Promise<boolean> {
  for (let path = dir; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 }).catch((error: Error) => {
    throw new SandboxUnavailable(`The jail needs a writable folder (SLUICE_DATA_DIR): ${error.message}`);
  });
}
