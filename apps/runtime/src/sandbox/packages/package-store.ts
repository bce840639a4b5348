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
  /** Installations whose folders are open. */
  private users = 0;
  /** While the downloads are too large: resolves when they are deleted, after the installations in progress. */
  private emptied: PromiseWithResolvers<void> | undefined;
  private sweptAt = -Infinity;

  /** @param mostBytes of the disk that the downloads may take; over it, they are deleted */
  constructor(
    private readonly folder: string,
    private readonly mostBytes: number,
    private readonly uid: number,
  ) {}

  /**
   * Makes the folder of downloads, and one for an installation, which `use` removes. Waits while too large downloads are deleted.
   *
   * @throws Error if the store cannot be written to
   */
  async open(): Promise<{ work: string; downloads: string }> {
    await this.sweep();
    while (this.emptied) await this.emptied.promise;
    this.users += 1;
    try {
      const { downloads } = this;
      const work = join(this.folder, `install-${randomBytes(8).toString('hex')}`);
      await makeFolderFor(this.uid, downloads);
      await makeFolderFor(this.uid, work);
      return { work, downloads };
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  /** Carries out an installation in a folder of `open`. Afterwards it removes the folder, and deletes the downloads if they have become too large. */
  async use<T>(work: string, install: () => Promise<T>): Promise<T> {
    try {
      return await install();
    } finally {
      await rm(work, { recursive: true, force: true });
      if ((await diskUsage(this.downloads)) > this.mostBytes) this.emptied ??= Promise.withResolvers();
      this.leave();
    }
  }

  private get downloads(): string {
    return join(this.folder, 'downloads');
  }

  private leave(): void {
    this.users -= 1;
    if (this.users > 0 || !this.emptied) return;
    const { resolve } = this.emptied;
    void this.empty().finally(() => {
      this.emptied = undefined;
      resolve();
    });
  }

  /** In one step, for npm in another process that uses the same folder. Never rejects: the sweep deletes what remains. */
  private async empty(): Promise<void> {
    const old = join(this.folder, `old-${randomBytes(8).toString('hex')}`);
    await rename(this.downloads, old).catch(() => undefined);
    await rm(old, { recursive: true, force: true }).catch(() => undefined);
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
