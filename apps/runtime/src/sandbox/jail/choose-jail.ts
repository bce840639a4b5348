import { existsSync, readFileSync } from 'node:fs';
import { access, chmod, constants, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BwrapJail } from './bwrap-jail.js';
import { mostOpenFiles } from './command-line.js';
import { confineFailure } from './confine.js';
import type { Jail, Rung } from './jail.js';
import type { JailRoot } from './jail-root.js';
import { OpenJail } from './open-jail.js';
import { SandboxUnavailable } from '../sandbox.js';
import { runInJail } from './run-in-jail.js';
import { SetprivJail } from './setpriv-jail.js';
import { UnshareJail } from './unshare-jail.js';

/** Strongest first. Rungs below `weakestSafe` cannot contain hostile code. */
export const ladder: Rung[] = ['bwrap', 'unshare', 'setpriv-lsm', 'setpriv', 'none'];
const weakestSafe: Rung = 'setpriv-lsm';
const probeMs = 30_000;

/** `setpriv` also chooses `setpriv-lsm`, where that works. */
export type JailChoice = 'auto' | Rung;

export interface ChosenJail {
  jail: Jail;
  /** Why stronger rungs were not used */
  refused: { jail: string; reason: string }[];
}

export function isSafe(rung: Rung): boolean {
  return ladder.indexOf(rung) <= ladder.indexOf(weakestSafe);
}

/**
 * Returns the strongest rung in which Node starts and reaches nothing that it must not. It is not enough that the programs exist: whether the kernel,
 * the container and the security modules let them work shows only when they run.
 * @param required refuse rungs that are not safe
 * @throws SandboxUnavailable with the reason for each rung
 */
export async function chooseJail(root: JailRoot, choice: JailChoice, required: boolean, uid: number): Promise<ChosenJail> {
  const refused: ChosenJail['refused'] = [];
  for (const rung of rungsOf(choice)) {
    if (required && !isSafe(rung)) {
      refused.push({ jail: rung, reason: 'cannot contain hostile code' });
      continue;
    }
    const jail = jailOf(rung, root);
    const reason = await failure(jail, uid);
    if (reason === null) return { jail, refused };
    refused.push({ jail: rung, reason });
  }
  const reasons = refused.map(({ jail, reason }) => `${jail}: ${reason}`).join('; ');
  throw new SandboxUnavailable(`No jail for components works on this machine (${reasons})${required ? `. ${advice()}` : ''}`);
}

/** How an operator gets a safe jail. */
export function advice(limits = ownLimits()): string {
  const openFiles = Number(/^Max open files +\w+ +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  if (openFiles < mostOpenFiles) return `Raise the hard limit of open files (ulimit -n) from ${openFiles} to at least ${mostOpenFiles}`;
  return (
    'Install bubblewrap; a container needs docker/seccomp-runtime.json as its seccomp profile, on Kubernetes k8s/components/jail-seccomp; see ' +
    'docs/security.md. Only if you trust every author of a component as much as yourself, set RUNNER_TRUST_ALL_COMPONENTS=true'
  );
}

function ownLimits(): string {
  const file = '/proc/self/limits';
  // only Linux has it
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function rungsOf(choice: JailChoice): Rung[] {
  if (choice === 'auto') return ladder;
  if (choice === 'setpriv') return ['setpriv-lsm', 'setpriv'];
  return [choice];
}

export function jailOf(rung: Rung, root: JailRoot): Jail {
  switch (rung) {
    case 'bwrap':
      return new BwrapJail(root);
    case 'unshare':
      return new UnshareJail(root);
    case 'setpriv-lsm':
    case 'setpriv':
      return new SetprivJail(root, rung);
    case 'none':
      return new OpenJail(root);
  }
}

/** Through one of these, a program acts as its user, or as root, outside of any jail. */
function powerfulSockets(): string[] {
  const session = process.env.XDG_RUNTIME_DIR || `/run/user/${process.getuid?.()}`;
  return [
    `${session}/bus`,
    `${session}/systemd/private`,
    `${session}/docker.sock`,
    `${session}/podman/podman.sock`,
    '/var/run/docker.sock',
  ];
}

/**
 * Without namespaces, a component can connect to each unix socket that is open to its user. Unless we are root, that is our own user.
 * @returns why the rung cannot be used; null: it can
 */
export async function openSocket(rung: Rung, sockets = powerfulSockets(), isRoot = process.getuid?.() === 0): Promise<string | null> {
  if (rung !== 'setpriv-lsm' || isRoot) return null;
  for (const path of sockets) {
    const isOpen = await access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
    if (isOpen) return `what it holds runs as the user of Sluice, and would be obeyed by ${path}`;
  }
  return null;
}

/** Returns why this jail cannot be used; null: it can. */
async function failure(jail: Jail, uid: number): Promise<string | null> {
  const open = await openSocket(jail.rung);
  if (open !== null) return open;
  const exchangeDir = await mkdtemp(join(tmpdir(), 'sluice-probe-')).catch((error: Error) => {
    throw new SandboxUnavailable(`The sandbox needs a writable temporary directory (TMPDIR): ${error.message}`);
  });
  const secret = `${exchangeDir}.secret`;
  const server = createServer((socket) => socket.destroy());
  try {
    // The jail runs as a different user
    await chmod(exchangeDir, 0o755);
    await writeFile(secret, 'secret', { mode: 0o644 });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const { output, reason } = await probe(jail, uid, exchangeDir, [String(port), secret, String(process.pid)]);
    if (reason !== null) return reason;
    const { reached } = JSON.parse(output) as { reached: string[] };
    return isSafe(jail.rung) && reached.length > 0 ? `what it holds reaches ${reached.join(', ')}` : null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    server.close();
    await rm(secret, { force: true });
    await rm(exchangeDir, { recursive: true, force: true });
  }
}

async function probe(jail: Jail, uid: number, exchangeDir: string, args: string[]): Promise<{ output: string; reason: string | null }> {
  const { exit, output, errors } = await runInJail(
    jail,
    { kind: 'probe', exchangeDir, uid, heapMb: 64, args },
    { wallMs: probeMs },
    65_536,
  );
  const failed = exit !== '0' || !output.startsWith('{');
  return { output, reason: failed ? errors.trim().split('\n')[0] || (confineFailure(exit) ?? `ended with ${exit}`) : null };
}
