import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AddressGuard, EgressRefused, type Resolution, withoutBrackets } from '#egress';
import { EgressBudget } from '../egress/egress-budget.js';
import type { Jail, JailedProgram } from '../jail/jail.js';
import { runInJail, type WithMemory } from '../jail/run-in-jail.js';
import type { ExchangeBase } from '../processes/exchange.js';
import { ComponentRejected } from '../sandbox.js';
import { folderSize } from './folder-size.js';
import { installEgress, type InstallLimits } from './install-limits.js';
import { npmFailure, type NpmFailure } from './npm-failure.js';
import type { NpmSettings } from './npm-settings.js';

export interface InstallTools {
  jail: Jail;
  exchanges: ExchangeBase;
  /** The user of every installation, where we are root: npm runs no code of others, and the store has to have one owner */
  uid: number;
  withMemory: WithMemory;
  npm: NpmSettings;
  limits: InstallLimits;
  /** The folder that `node_modules` is made in, and npm's store of downloads */
  work: string;
  store: string;
  onDownloaded(bytes: number): Promise<void>;
  /** Receives time of the main thread, in ms */
  onCost(ms: number): void;
}

const watchMs = 300;
const outputBytes = 4 << 20;

/**
 * Lets npm install dependencies in the jail, without running any of their code. npm asks the registry, and
 * uses earlier downloads while the registry cannot be reached.
 * @param dependencies ranges by name, as in a package.json
 * @param until when the caller stops waiting, in ms since the epoch
 * @returns null: installed
 */
export async function npmInstall(dependencies: Record<string, string>, tools: InstallTools, until: number): Promise<NpmFailure | null> {
  await writeFile(join(tools.work, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const failure = await attempt(tools, [], until);
  if (failure?.kind !== 'unreachable') return failure;
  const offline = await attempt(tools, ['--offline'], until);
  return offline?.kind === 'not-stored' ? failure : offline;
}

async function attempt(tools: InstallTools, options: string[], until: number): Promise<NpmFailure | null> {
  const { jail, exchanges, uid, withMemory, npm, limits, work, store } = tools;
  const egress = installEgress(limits);
  const guard = new RegistryGuard(npm.hosts);
  const exchange = await exchanges.open(uid, guard, egress);
  exchange.charge(new EgressBudget(egress, tools.onCost));
  const watch = new AbortController();
  const watching = keepWatch(work, limits, () => exchange.egress.bytesDown, watch);
  try {
    await writeFor(uid, join(exchange.dir, 'npmrc'), npm.npmrc);
    if (npm.authorities !== null) await writeFor(uid, join(exchange.dir, 'ca.pem'), npm.authorities);
    const program: Omit<JailedProgram, 'args'> = {
      kind: 'npm',
      exchangeDir: exchange.dir,
      uid,
      heapMb: limits.heapMb,
      writable: [work, store],
    };
    const { exchangePath, writablePaths } = jail.command({ ...program, args: [] });
    const [workPath, storePath] = writablePaths as [string, string];
    const args = [
      ...[`${exchangePath}/${exchange.socketName}`, workPath, 'install'],
      ...[`--cache=${storePath}`, `--userconfig=${exchangePath}/npmrc`, `--globalconfig=${exchangePath}/none`],
      ...(npm.authorities === null ? [] : [`--cafile=${exchangePath}/ca.pem`]),
      ...['--ignore-scripts', '--allow-git=none', '--allow-remote=none', '--allow-file=none', '--allow-directory=none'],
      ...['--omit=dev', '--omit=optional', '--no-bin-links', '--no-audit', '--no-fund', '--no-update-notifier', '--no-package-lock'],
      ...['--json', '--loglevel=error', '--logs-max=0', '--progress=false', '--color=false'],
      ...['--fetch-retries=1', '--fetch-retry-mintimeout=500', '--fetch-timeout=15000', ...options],
    ];
    const { exit, output, errors } = await withMemory(until, (signal) =>
      runInJail(
        jail,
        { ...program, args },
        {
          wallMs: Math.min(until - Date.now(), limits.wallMs),
          cpuMs: limits.cpuMs,
          signal: AbortSignal.any([watch.signal, signal]),
        },
        outputBytes,
      ),
    );
    const ended = exit === '0' ? ((await excess(work, limits)) ?? exit) : exit;
    return ended === '0' ? null : npmFailure(ended, output, errors, limits);
  } finally {
    watch.abort();
    await watching;
    await tools.onDownloaded(exchange.egress.bytesDown);
    await exchange.close();
  }
}

/** Ends the installation when it has written or downloaded too much. The folder is checked periodically, so a little more may be written. */
async function keepWatch(work: string, limits: InstallLimits, downloaded: () => number, watch: AbortController): Promise<void> {
  while (!watch.signal.aborted) {
    const reason = downloaded() > limits.downloadedBytes ? 'size' : await excess(work, limits);
    if (reason) watch.abort(reason);
    else await sleep(watchMs, undefined, { signal: watch.signal }).catch(() => {});
  }
}

/** Which limit the folder exceeds, if any. */
async function excess(work: string, limits: InstallLimits): Promise<'files' | 'size' | null> {
  const { files, bytes } = await folderSize(work, limits);
  if (files > limits.files) return 'files';
  return bytes > limits.bytes ? 'size' : null;
}

async function writeFor(uid: number, file: string, text: string): Promise<void> {
  await writeFile(file, text, { mode: 0o400 });
  if (process.getuid?.() === 0) await chown(file, uid, uid);
}

/** A folder that the jail may write to. */
export async function makeFolderFor(uid: number, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  if (process.getuid?.() === 0) await chown(folder, uid, uid);
}

export interface InstalledPackage {
  /** Its folder, below the folder of the installation */
  path: string;
  name: string;
  version: string;
  hasInstallScript: boolean;
}

/** Usual ones have some hundred KB. Packages decide how long it is, and parsing it blocks the main thread. */
const lockFileBytes = 4 << 20;

/**
 * The packages that npm has installed, according to its lock file.
 * @throws ComponentRejected if the file is too large, also for npm, which then leaves it out
 */
export async function installedPackages(work: string): Promise<InstalledPackage[]> {
  const file = join(work, 'node_modules', '.package-lock.json');
  const { size } = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return { size: Infinity };
    throw error;
  });
  if (size > lockFileBytes)
    throw new ComponentRejected(`The packages have too much metadata: npm needs more than ${lockFileBytes >> 20} MB to list them`);
  const record = JSON.parse(await readFile(file, 'utf8')) as {
    packages: Record<string, { name?: string; version?: string; hasInstallScript?: boolean }>;
  };
  return Object.entries(record.packages).map(([path, { name, version = '', hasInstallScript = false }]) => ({
    path,
    name: name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version,
    hasInstallScript,
  }));
}

/** Lets an installation connect to the registries that npm is configured for and to nothing else; they may have private addresses. */
class RegistryGuard implements Pick<AddressGuard, 'resolve'> {
  private readonly guard: AddressGuard;

  constructor(private readonly hosts: { host: string; port: number }[]) {
    this.guard = AddressGuard.fromConfig(
      hosts.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)).join(','),
    );
  }

  /** @throws EgressRefused */
  async resolve(host: string, port: number): Promise<Resolution> {
    const name = withoutBrackets(host).toLowerCase();
    if (!this.hosts.some((each) => each.host === name && each.port === port))
      throw new EgressRefused('EACCES', `${name} is not the registry`);
    return this.guard.resolve(host, port);
  }
}
