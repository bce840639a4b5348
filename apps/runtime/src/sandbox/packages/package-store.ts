import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { folderSize } from './folder-size.js';
import { makeFolderFor } from './npm-install.js';

const sweepEveryMs = 3600_000;
/** An installation takes a minute at most: a folder that has not changed for this long was left by a killed process. */
const leftMs = 600_000;
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
      // In this order: other processes do not empty the downloads from then on
      await makeFolderFor(this.uid, work);
      await makeFolderFor(this.uid, downloads);
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
      try {
        await rm(work, { recursive: true, force: true });
        if ((await diskUsage(this.downloads)) > this.mostBytes) this.emptied ??= Promise.withResolvers();
      } finally {
        this.leave();
      }
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

  /**
   * Deletes the downloads, unless another process uses them (`sluice component check` beside a running system): a later installation deletes them then.
   * Never rejects: the sweep deletes what remains.
   */
  private async empty(): Promise<void> {
    const { recent } = await this.folders();
    if (recent.some((name) => name.startsWith('install-'))) return;
    const old = join(this.folder, `old-${randomBytes(8).toString('hex')}`);
    await rename(this.downloads, old).catch(() => undefined);
    await rm(old, { recursive: true, force: true }).catch(() => undefined);
  }

  /** Removes what a killed process has left. */
  private async sweep(): Promise<void> {
    if (performance.now() - this.sweptAt < sweepEveryMs) return;
    this.sweptAt = performance.now();
    const { left } = await this.folders();
    for (const name of left) await rm(join(this.folder, name), { recursive: true, force: true });
  }

  /** The folders of installations, and of emptied downloads: those that may be in use, and those that a killed process has left. */
  private async folders(): Promise<{ recent: string[]; left: string[] }> {
    const recent: string[] = [];
    const left: string[] = [];
    for (const name of await readdir(this.folder).catch(() => [])) {
      if (!/^(install|old)-/.test(name)) continue;
      const { mtimeMs } = await stat(join(this.folder, name)).catch(() => ({ mtimeMs: Infinity }));
      if (mtimeMs !== Infinity) (Date.now() - mtimeMs > leftMs ? left : recent).push(name);
    }
    return { recent, left };
  }
}

/** The bytes of the disk that a folder takes. In a process, because the store may have 100 000 files, each of which would cost the main thread 10 µs. */
async function diskUsage(folder: string): Promise<number> {
  // Its exit status is 1 if a file disappeared meanwhile
  const { stdout } = await run('du', ['-sk', folder]).catch((error: { stdout?: string }) => error);
  const kib = Number.parseInt(stdout ?? '', 10);
  return Number.isNaN(kib) ? (await folderSize(folder)).bytes : kib * 1024;
}
