import { randomBytes } from 'node:crypto';
import { chmodSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { AddressGuard } from '#egress';
import type { EgressBudget, EgressLimits } from '../egress/egress-budget.js';
import { EgressProxy, type EgressCounts } from '../egress/egress-proxy.js';
import { SandboxUnavailable } from '../sandbox.js';

/** The folder and the egress proxy that the runtime shares with one jailed process. */
export interface Exchange {
  dir: string;
  /** The egress socket's file in it */
  socketName: string;
  egress: EgressCounts;
  /** Resolves when the process has been refused too many connections */
  flooded: Promise<void>;
  /** Counts connections against this budget from now on */
  charge(budget: EgressBudget): void;
  close(): Promise<void>;
}

const prefix = 'sluice-run-';
/** The parents of this process that are in use. */
const parents = new Set<string>();

/**
 * The parent of the exchange folders of all processes. It is in the temporary directory, because the path of a unix socket can have at most 107 bytes.
 * The folders' names cannot be guessed: without namespaces, nothing else protects a socket from other processes.
 */
export class ExchangeBase {
  private dir: string;

  constructor() {
    sweepLeftovers();
    this.dir = makeParent();
  }

  /** Creates the folder of one process, with its egress socket. @throws SandboxUnavailable */
  async open(uid: number, guard: Pick<AddressGuard, 'resolve'>, limits: EgressLimits): Promise<Exchange> {
    const dir = await this.folder();
    const socketName = 's';
    const proxy = await EgressProxy.listen(join(dir, socketName), guard, limits).catch((error: Error) => {
      void removeFolder(dir);
      throw unavailable(error);
    });
    await giveTo(uid, join(dir, socketName));
    return {
      dir,
      socketName,
      egress: proxy.counts,
      flooded: proxy.flooded,
      charge: (budget) => proxy.charge(budget),
      close: async () => {
        proxy.close();
        await removeFolder(dir);
      },
    };
  }

  /**
   * Creates only the folder. The process must not be able to write to it, because it could fill the disk. If we are root, we own the folder; otherwise
   * the jail mounts it read-only, or Landlock denies writing.
   * @throws SandboxUnavailable
   */
  async folder(): Promise<string> {
    try {
      const dir = join(this.parent(), randomBytes(16).toString('hex'));
      await mkdir(dir);
      await chmod(dir, process.getuid?.() === 0 ? 0o755 : 0o700);
      return dir;
    } catch (error) {
      throw unavailable(error as Error);
    }
  }

  close(): void {
    parents.delete(basename(this.dir));
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Many systems remove folders from the temporary directory that have not changed for ten days. Its name is known by then, so the new one has another. */
  private parent(): string {
    if (isOwn(this.dir)) return this.dir;
    parents.delete(basename(this.dir));
    return (this.dir = makeParent());
  }
}

function makeParent(): string {
  const dir = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  parents.add(basename(dir));
  chmodSync(dir, 0o711);
  return dir;
}

/** A link to another folder is not: anyone can make one in the temporary directory. */
function isOwn(dir: string): boolean {
  const found = lstatSync(dir, { throwIfNoEntry: false });
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.();
}

/** Such as a full disk, or no file descriptor that is left. */
const unavailable = ({ message }: Error) => new SandboxUnavailable(`The temporary directory cannot be used: ${message}`);

/** Never rejects: it needs a file descriptor, and there may be none left for a while. What remains is removed with the parent. */
async function removeFolder(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true, maxRetries: 5 }).catch(() => {});
}

/** Makes the process's user own a file. Unless we are root, we are that user. */
async function giveTo(uid: number, path: string): Promise<void> {
  await chmod(path, 0o700);
  if (process.getuid?.() === 0) await chown(path, uid, uid);
}

/** Removes the parents of processes that were killed. In a container, they often had the id of this one. */
function sweepLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length).split('-')[0]) : 0;
    if (!pid || parents.has(name) || (pid !== process.pid && isRunning(pid))) continue;
    try {
      const dir = join(tmpdir(), name);
      if (isOwn(dir)) rmSync(dir, { recursive: true, force: true });
    } catch {
      continue;
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
