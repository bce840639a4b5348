import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { folderSize } from './folder-size.js';
import { makeFolderFor } from './npm-install.js';

const sweepEveryMs = 3600_000;
const unusedMs = 3600_000;
const run = promisify(execFile);

/** The folder of npm's downloads, which all accounts share, and of the installations in progress. */
export class PackageStore {
  private readonly inUse = new Set<Promise<unknown>>();
  private sweptAt = -Infinity;

  /** @param mostBytes of the disk that the downloads may take; over it, they are deleted */
  constructor(
    private readonly folder: string,
    private readonly mostBytes: number,
    private readonly uid: number,
  ) {}

  /** Makes the folder of downloads, and one for an installation. @throws Error if the store cannot be written to */
  async open(): Promise<{ work: string; downloads: string }> {
    await this.sweep();
    const { downloads } = this;
    const work = join(this.folder, `install-${randomBytes(8).toString('hex')}`);
    await makeFolderFor(this.uid, downloads);
    await makeFolderFor(this.uid, work);
    return { work, downloads };
  }

  /** Carries out an installation in a folder of `open`. Afterwards it removes the folder, and deletes the downloads if they have become too large. */
  async use<T>(work: string, install: () => Promise<T>): Promise<T> {
    const installing = install();
    this.inUse.add(installing);
    try {
      return await installing;
    } finally {
      this.inUse.delete(installing);
      await rm(work, { recursive: true, force: true });
      if ((await diskUsage(this.downloads)) > this.mostBytes) await this.empty();
    }
  }

  private get downloads(): string {
    return join(this.folder, 'downloads');
  }

  /** The next installation begins a new folder. npm still uses the old one in other installations, so it is deleted after them. */
  private async empty(): Promise<void> {
    const old = join(this.folder, `old-${randomBytes(8).toString('hex')}`);
    const users = [...this.inUse];
    // Another replica may do the same
    await rename(this.downloads, old).catch(() => undefined);
    const remove = async (): Promise<void> => {
      await Promise.allSettled(users);
      await rm(old, { recursive: true, force: true });
    };
    // The sweep deletes the rest if this fails
    remove().catch(() => {});
  }

  /** Removes what a killed process has left. */
  private async sweep(): Promise<void> {
    if (performance.now() - this.sweptAt < sweepEveryMs) return;
    this.sweptAt = performance.now();
    for (const name of await readdir(this.folder).catch(() => [])) {
      const { mtimeMs } = await stat(join(this.folder, name)).catch(() => ({ mtimeMs: Infinity }));
      if (/^(install|old)-/.test(name) && Date.now() - mtimeMs > unusedMs)
        await rm(join(this.folder, name), { recursive: true, force: true });
    }
  }
}

/** The bytes of the disk that a folder takes. In a process, because the store may have 100 000 files, each of which would cost the main thread 10 µs. */
async function diskUsage(folder: string): Promise<number> {
  // Its exit status is 1 if a file disappeared meanwhile
  const { stdout } = await run('du', ['-sk', folder]).catch((error: { stdout?: string }) => error);
  const kib = Number.parseInt(stdout ?? '', 10);
  return Number.isNaN(kib) ? (await folderSize(folder)).bytes : kib * 1024;
}
