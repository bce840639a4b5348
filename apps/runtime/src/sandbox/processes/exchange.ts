import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressGuard } from '#egress';
import type { EgressLimits } from '../egress/egress-limits.js';
import { EgressProxy, type EgressCounts } from '../egress/egress-proxy.js';

/** What one process and we have in common. */
export interface Exchange {
  dir: string;
  /** The egress socket's file in it */
  socketName: string;
  egress: EgressCounts;
  close(): Promise<void>;
}

const prefix = 'sluice-run-';

/**
 * Below this folder each process has one that it shares with us. In the temporary directory, because the path of a unix socket may have 107
 * bytes and the data folder may lie anywhere. Names are unguessable: without namespaces, a path is all that keeps a socket from others.
 */
export class ExchangeBase {
  private readonly dir: string;

  constructor() {
    sweepLeftovers();
    this.dir = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
    chmodSync(this.dir, 0o711);
  }

  /** A folder for one process, with its way out in it. */
  async open(uid: number, guard: AddressGuard, limits: EgressLimits): Promise<Exchange> {
    const dir = await this.folder(uid);
    const socketName = 's';
    const proxy = await EgressProxy.listen(join(dir, socketName), guard, limits);
    await own(join(dir, socketName), uid);
    return {
      dir,
      socketName,
      egress: proxy.counts,
      close: async () => {
        proxy.close();
        await rm(dir, { recursive: true, force: true });
      },
    };
  }

  /** Only the folder; as root it belongs to the process's user alone. */
  async folder(uid: number): Promise<string> {
    const dir = join(this.dir, randomBytes(16).toString('hex'));
    await mkdir(dir);
    await own(dir, uid);
    return dir;
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Gives a file to a process's user; who is no root is that user himself. */
async function own(path: string, uid: number): Promise<void> {
  await chmod(path, 0o700);
  if (process.getuid?.() === 0) await chown(path, uid, uid);
}

/** Folders of parents that were killed and could not clear up. */
function sweepLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length).split('-')[0]) : 0;
    if (!pid || isRunning(pid)) continue;
    try {
      const dir = join(tmpdir(), name);
      if (statSync(dir).uid === process.getuid?.()) rmSync(dir, { recursive: true, force: true });
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
