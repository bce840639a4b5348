import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { SharedWork } from '#limits';
import type { Spend } from '../egress/egress-budget.js';
import type { Jail } from '../jail/jail.js';
import type { WithMemory } from '../jail/run-in-jail.js';
import type { ExchangeBase } from '../processes/exchange.js';
import {
  type Caller,
  ComponentRejected,
  type ComponentWarning,
  type PackageBundle,
  type PackageImport,
  SandboxUnavailable,
} from '../sandbox.js';
import { bundlePackages, type RefusedImport, type ResolvedImport } from './bundle-packages.js';
import { DownloadQuota } from './download-quota.js';
import { defaultInstallLimits, type InstallLimits } from './install-limits.js';
import { type InstalledPackage, installedPackages, type InstallTools, npmInstall } from './npm-install.js';
import type { NpmFailure } from './npm-failure.js';
import { readNpmSettings } from './npm-settings.js';
import { isInstallable, isSatisfied, readSpecifier } from './package-specifier.js';
import { PackageStore } from './package-store.js';
import { isListed } from './packages.config.js';
import { dependenciesOf, type Wanted } from './wanted.js';

export interface PackageSettings {
  policy: 'any' | 'listed' | 'none';
  /** Names, and scopes as `@example/*` */
  list: string[];
  /** The folder of downloads and of installations in progress; empty: below the data folder */
  store: string;
  /** The bytes that an account may download in a day; null: no limit */
  downloadedBytesPerDay?: number | null;
  /** Where npm finds its settings; default: this process's environment */
  env?: NodeJS.ProcessEnv;
  limits?: Partial<InstallLimits>;
}

interface Tools {
  jail: Jail;
  exchanges: ExchangeBase;
  uid: number;
  withMemory: WithMemory;
  /** The versions of the packages that are part of Sluice, by name */
  shipped: ReadonlyMap<string, string>;
  /** Receives what the downloads of an account cost */
  spend?: Spend;
}

/** A caller that stops waiting some time. */
type Waiting = Required<Caller>;

/** Installs dependencies, in place of those of an earlier attempt. */
type Install = (dependencies: Record<string, string>) => Promise<InstalledPackage[]>;

interface UsablePackages {
  packages: InstalledPackage[];
  /** By import: what its package is called among the installed ones */
  names: Map<Wanted, string>;
  refused: RefusedImport[];
}

const NOT_INSTALLABLE = 'has a name that npm cannot install';

// Not on the main thread: it takes a tenth of a second for the largest bundle
const compress = promisify(zstdCompress);

/**
 * Installs and bundles the packages that components import. npm's own store keeps what was downloaded, by its checksum; installations are temporary.
 * Equal requests at the same time share one installation.
 */
export class PackageInstaller {
  private readonly installations = new SharedWork<string, PackageBundle>();
  private readonly limits: InstallLimits;
  private readonly store: PackageStore;
  private readonly quota: DownloadQuota;

  constructor(
    private readonly settings: PackageSettings,
    private readonly tools: Tools,
  ) {
    this.limits = { ...defaultInstallLimits, ...settings.limits };
    this.store = new PackageStore(settings.store, this.limits.storeBytes, tools.uid);
    this.quota = new DownloadQuota(settings.downloadedBytesPerDay ?? null);
  }

  /** @throws ComponentRejected, SandboxUnavailable, TooMuchDownloaded */
  async bundle(imports: PackageImport[], caller: Waiting): Promise<PackageBundle> {
    const { policy, list } = this.settings;
    const wanted: Wanted[] = [];
    const warnings: ComponentWarning[] = [];
    for (const each of imports) {
      const read = readSpecifier(each.specifier);
      if (!read) throw refusal(each, 'is neither a package nor one of Node’s own modules');
      if (!isInstallable(read.name)) throw refusal(each, NOT_INSTALLABLE);
      const shipped = this.tools.shipped.get(read.name);
      if (shipped !== undefined && isSatisfied(read.range, shipped)) continue;
      if (policy === 'none' || (policy === 'listed' && !isListed(read.name, list))) {
        if (shipped !== undefined) warnings.push(usesShipped(each, shipped, 'other packages were not allowed'));
        else if (each.isStatic) throw refusal(each, this.notAllowed());
        continue;
      }
      wanted.push({ ...each, ...read });
    }
    if (wanted.length === 0) return { code: '', packed: '', versions: {}, warnings };
    await this.quota.check(caller.accountId);
    const bundle = await this.installed(wanted, caller);
    return { ...bundle, warnings: [...warnings, ...bundle.warnings] };
  }

  /** Downloads packages, as `name` or `name@range`, so that they can be installed without a registry. Returns their exact versions. */
  async preload(specifiers: string[]): Promise<Record<string, string>> {
    const imports = specifiers.map((specifier) => ({ specifier, kind: 'import', isStatic: true, line: null }) as const);
    const wanted = imports.map((each) => {
      const read = readSpecifier(each.specifier);
      if (!read || read.path !== '') throw refusal(each, 'is not a package');
      if (!isInstallable(read.name)) throw refusal(each, NOT_INSTALLABLE);
      return { ...each, ...read };
    });
    const { dependencies, names } = dependenciesOf(wanted);
    return this.inFolder({ accountId: '', until: Date.now() + this.limits.wallMs }, async (install) => {
      const packages = await install(dependencies);
      return Object.fromEntries(wanted.map((each) => [each.specifier, versionOf(packages, names.get(each)!)]));
    });
  }

  private notAllowed(): string {
    const { policy, list } = this.settings;
    const others = policy === 'listed' ? `. Packages that this installation allows: ${list.join(', ') || 'none'}` : '';
    return `is not available. Available packages: ${this.shipped()}${others}`;
  }

  /** The packages that need no registry. */
  private shipped(): string {
    return [...this.tools.shipped.keys()].sort().join(', ');
  }

  private installed(wanted: Wanted[], caller: Waiting): Promise<PackageBundle> {
    // With the lines, which become part of messages
    return this.installations.do(JSON.stringify(wanted), caller.until, () => this.install(wanted, caller));
  }

  private async install(wanted: Wanted[], caller: Waiting): Promise<PackageBundle> {
    const { dependencies } = dependenciesOf(wanted);
    if (Object.keys(dependencies).length > this.limits.named)
      throw new ComponentRejected(`The component imports ${Object.keys(dependencies).length} packages; the limit is ${this.limits.named}`);
    return this.inFolder(caller, async (install, work) => {
      let usable: UsablePackages;
      try {
        usable = await this.installUsable(wanted, install, work);
      } catch (error) {
        // A version of a package that is part of Sluice, and a registry that does not respond: better the version that is there than nothing
        if (!(error instanceof RegistryUnreachable) || wanted.some(({ name }) => !this.tools.shipped.has(name))) throw error;
        const warnings = wanted.map((each) => usesShipped(each, this.tools.shipped.get(each.name)!, 'the registry could not be reached'));
        return { code: '', packed: '', versions: {}, warnings };
      }
      const { packages, names, refused } = usable;
      const resolved = [...names].map(([each, name]): ResolvedImport => ({ ...each, installed: name + each.path }));
      const code = await bundlePackages(resolved, refused, { ...this.tools, work, limits: this.limits }, caller.until);
      const packed = await compress(code);
      if (packed.length > this.limits.storedBytes)
        throw new ComponentRejected(
          `The packages have more than ${this.limits.storedBytes >> 20} MB of compressed code; import smaller ones`,
        );
      const versions = Object.fromEntries([...names].map(([each, name]) => [each.specifier, versionOf(packages, name)]));
      const warnings = refused.map(({ specifier, line, reason }) => ({
        message: `Importing "${specifier}" fails: ${reason}`,
        line,
        column: null,
      }));
      return { code, packed: packed.toString('base64'), versions, warnings };
    });
  }

  /** Installs the packages without those that cannot be used and that the component can do without: `try { require("bufferutil") } catch {}`. */
  private async installUsable(wanted: Wanted[], install: Install, work: string): Promise<UsablePackages> {
    const refused: RefusedImport[] = [];
    for (let kept = wanted; ;) {
      const { dependencies, names } = dependenciesOf(kept);
      try {
        const packages = kept.length === 0 ? [] : await install(dependencies);
        await this.check(packages, work);
        return { packages, names, refused };
      } catch (error) {
        const optional = kept.filter(({ name }) => !kept.some((each) => each.isStatic && each.name === name));
        if (!(error instanceof Unusable) || optional.length === 0) throw error;
        const named = optional.filter(({ name }) => error.reasons.has(name));
        // Otherwise one of their dependencies, or of those that the component needs, which the next attempt shows
        const dropped = named.length > 0 ? named : optional;
        refused.push(...dropped.map((each) => ({ ...each, reason: error.reasons.get(each.name) ?? error.message })));
        kept = kept.filter((each) => !dropped.includes(each));
      }
    }
  }

  /** Gives the work a folder, and a function that installs into it; removes the folder afterwards. @throws SandboxUnavailable if a file cannot be written */
  private async inFolder<T>({ accountId, until }: Waiting, work: (install: Install, folder: string) => Promise<T>): Promise<T> {
    const { uid, jail, exchanges, withMemory, spend } = this.tools;
    const folders = await this.store.open().catch((error: Error) => {
      throw new SandboxUnavailable(`Packages cannot be installed: ${this.settings.store} cannot be written to (${error.message})`);
    });
    const done = this.store.use(folders.work, async () => {
      const npm = await readNpmSettings(this.settings.env).catch((error: Error) => {
        throw new SandboxUnavailable(`Packages cannot be installed: npm's settings cannot be read (${error.message})`);
      });
      const tools: InstallTools = {
        ...{ jail, exchanges, uid, withMemory, npm, limits: this.limits, work: folders.work, store: folders.downloads },
        onDownloaded: (bytes) => this.quota.count(accountId, bytes),
        onCost: (ms) => spend?.(accountId, ms),
      };
      return work(async (dependencies) => {
        await rm(join(folders.work, 'node_modules'), { recursive: true, force: true });
        const failure = await npmInstall(dependencies, tools, until);
        if (failure) throw this.errorOf(failure, Object.keys(dependencies).join(', '));
        return installedPackages(folders.work);
      }, folders.work);
    });
    return done.catch((error: NodeJS.ErrnoException) => {
      // Of the file system: the disk may be full
      throw error.syscall === undefined ? error : new SandboxUnavailable(`Packages cannot be installed: ${error.message}`);
    });
  }

  private errorOf({ kind, message, name = '' }: NpmFailure, names: string): Error {
    if (kind === 'broken') return new SandboxUnavailable(`Packages cannot be installed: ${message}`);
    if (kind === 'missing') return new Unusable(new Map([[name, message]]));
    if (kind === 'rejected') return new ComponentRejected(message);
    if (kind === 'failed') return new ComponentRejected(`npm cannot install ${names}: ${message}`);
    return new RegistryUnreachable(
      `${message}, and the packages ${names} were not installed before. Packages that need no registry: ${this.shipped()}`,
    );
  }

  private async check(packages: InstalledPackage[], work: string): Promise<void> {
    if (packages.length > this.limits.packages)
      throw new ComponentRejected(`The packages need ${packages.length} packages in total; the limit is ${this.limits.packages}`);
    const reasons = new Map<string, string>();
    for (const { name, version, path, hasInstallScript } of packages) {
      const native = await nativeFile(join(work, path));
      if (native) reasons.set(name, `The package ${name}@${version} contains native code (${native}), which cannot run in the sandbox`);
      else if (hasInstallScript && !isListed(name, this.settings.list))
        reasons.set(
          name,
          `The package ${name}@${version} runs a script when it is installed, which Sluice does not execute. If the package works without it, the ` +
            'operator can name it in SLUICE_PACKAGES_LIST',
        );
    }
    if (reasons.size > 0) throw new Unusable(reasons);
  }
}

class RegistryUnreachable extends ComponentRejected {}

/** Packages that do not exist or cannot run here, by name. */
class Unusable extends ComponentRejected {
  constructor(readonly reasons: ReadonlyMap<string, string>) {
    super([...reasons.values()][0]!);
  }
}

const versionOf = (packages: InstalledPackage[], name: string): string =>
  packages.find(({ path }) => path === `node_modules/${name}`)?.version ?? '';

/** The first file of a package that is, or builds, native code. */
async function nativeFile(folder: string): Promise<string | null> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    if (entry.isFile() && (entry.name.endsWith('.node') || entry.name === 'binding.gyp')) return entry.name;
    if (!entry.isDirectory() || entry.name === 'node_modules') continue;
    const inside = await nativeFile(join(folder, entry.name));
    if (inside) return `${entry.name}/${inside}`;
  }
  return null;
}

function usesShipped({ specifier, line }: PackageImport, version: string, why: string): ComponentWarning {
  return {
    message: `"${specifier}": version ${version} is used, which is part of Sluice, because ${why} when this code was first created. Any change of the code requests the package again`,
    line,
    column: null,
  };
}

function refusal({ specifier, line }: PackageImport, why: string): ComponentRejected {
  return new ComponentRejected(`The module "${specifier}" ${why}${line === null ? '' : ` (line ${line})`}`, line);
}
