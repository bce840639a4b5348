import { lstat, mkdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/**
 * Where the jail's root can be: in the data folder, unless a folder above it (`/root`, a home) is closed to other users, because as root the
 * jailed processes are other users. Then in the temporary directory, in a folder that nobody else could have made.
 */
export async function jailRootParent(dataDir: string): Promise<string> {
  const wanted = resolve(dataDir, 'sandbox');
  await mkdir(wanted, { recursive: true, mode: 0o755 });
  if (process.getuid?.() !== 0 || (await isOpenToAll(wanted))) return wanted;
  const fallback = join(tmpdir(), `sluice-jail-${process.getuid()}`);
  await mkdir(fallback, { recursive: true, mode: 0o755 });
  const info = await lstat(fallback);
  if (!info.isDirectory() || info.uid !== process.getuid() || (info.mode & 0o022) !== 0)
    throw new Error(`${fallback} belongs to somebody else`);
  return fallback;
}

async function isOpenToAll(dir: string): Promise<boolean> {
  for (let path = dir; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}
