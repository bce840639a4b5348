import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import type { Jail } from '../jail/jail.js';
import type { ExchangeBase } from '../processes/exchange.js';
import { ComponentRejected, type ComponentWarning, type PackageBundle, type PackageImport, SandboxUnavailable } from '../sandbox.js';
import { bundlePackages, type ResolvedImport } from './bundle-packages.js';
import { folderSize } from './folder-size.js';
import { defaultInstallLimits, type InstallLimits } from './install-limits.js';
import { type InstalledPackage, installedPackages, type InstallTools, makeFolderFor, npmInstall } from './npm-install.js';
import { readNpmSettings } from './npm-settings.js';
import { isInstallable, isSatisfied, readSpecifier } from './package-specifier.js';
import { isListed } from './packages.config.js';

export interface PackageSettings {
  policy: 'any' | 'listed' | 'none';
  /** Names, and scopes as `@example/*` */
  list: string[];
  /** The folder of downloads and of installations in progress; empty: below the data folder */
  store: string;
  /** Where npm finds its settings; default: this process's environment */
  env?: NodeJS.ProcessEnv;
  limits?: Partial<InstallLimits>;
}

interface Tools {
  jail: Jail;
  exchanges: ExchangeBase;
  uid: number;
  /** The versions of the packages that are part of Sluice, by name */
  shipped: ReadonlyMap<string, string>;
}

/** An import that names a package which has to be installed. */
interface Wanted extends PackageImport {
  name: string;
  range: string | null;
  path: string;
}

const NOT_INSTALLABLE = 'has a name that npm cannot install';

const checkStoreMs = 3600_000;
const unusedMs = 3600_000;

/**
 * Installs and bundles the packages that components import. npm's own store keeps what was downloaded, by its checksum; installations are temporary.
 * Equal requests at the same time share one installation.
 */
export class PackageInstaller {
  private readonly running = new Map<string, Promise<PackageBundle>>();
  private readonly limits: InstallLimits;
  private storeCheckedAt = -Infinity;

  constructor(
    private readonly settings: PackageSettings,
    private readonly tools: Tools,
  ) {
    this.limits = { ...defaultInstallLimits, ...settings.limits };
  }

  /**
   * @param until when the caller stops waiting, in ms since the epoch
   * @throws ComponentRejected, SandboxUnavailable
   */
  async bundle(imports: PackageImport[], until: number): Promise<PackageBundle> {
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
        if (shipped !== undefined) warnings.push(usesShipped(each, shipped, 'other packages are not allowed'));
        else if (each.isStatic) throw refusal(each, this.notAllowed());
        continue;
      }
      wanted.push({ ...each, ...read });
    }
    if (wanted.length === 0) return { code: '', versions: {}, warnings };
    const bundle = await this.installed(wanted, until);
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
    return this.inFolder(Date.now() + this.limits.wallMs, async (install) => {
      const packages = await install(dependencies);
      return Object.fromEntries(wanted.map((each) => [each.specifier, versionOf(packages, names.get(each)!)]));
    });
  }

  private notAllowed(): string {
    const { policy, list } = this.settings;
    const others = policy === 'listed' ? `. Packages that this installation allows: ${list.join(', ') || 'none'}` : '';
    return `is not available. ${this.available()}${others}`;
  }

  /** The packages that need no registry. */
  private available(): string {
    return `Available packages: ${[...this.tools.shipped.keys()].sort().join(', ')}`;
  }

  private installed(wanted: Wanted[], until: number): Promise<PackageBundle> {
    const key = JSON.stringify(wanted.map(({ kind, specifier }) => `${kind} ${specifier}`).sort());
    let running = this.running.get(key);
    if (!running) {
      running = this.install(wanted, until).finally(() => this.running.delete(key));
      this.running.set(key, running);
    }
    return running;
  }

  private async install(wanted: Wanted[], until: number): Promise<PackageBundle> {
    const { dependencies, names } = dependenciesOf(wanted);
    if (Object.keys(dependencies).length > this.limits.named)
      throw new ComponentRejected(`The component imports ${Object.keys(dependencies).length} packages; the limit is ${this.limits.named}`);
    const warnings: ComponentWarning[] = [];
    return this.inFolder(until, async (install, work) => {
      let packages: InstalledPackage[];
      try {
        packages = await install(dependencies);
      } catch (error) {
        // A version of a package that is part of Sluice, and a registry that does not respond: better the version that is there than nothing
        if (!(error instanceof RegistryUnreachable) || wanted.some(({ name }) => !this.tools.shipped.has(name))) throw error;
        for (const each of wanted) warnings.push(usesShipped(each, this.tools.shipped.get(each.name)!, 'the registry cannot be reached'));
        return { code: '', versions: {}, warnings };
      }
      await this.check(packages, work);
      const resolved = wanted.map((each): ResolvedImport => ({ ...each, installed: names.get(each)! + each.path }));
      const code = await bundlePackages(resolved, { ...this.tools, work, limits: this.limits }, until);
      const stored = zstdCompressSync(code).length;
      if (stored > this.limits.storedBytes)
        throw new ComponentRejected(
          `The packages have more than ${this.limits.storedBytes >> 20} MB of compressed code; import smaller ones`,
        );
      const versions = Object.fromEntries(wanted.map((each) => [each.specifier, versionOf(packages, names.get(each)!)]));
      return { code, versions, warnings };
    });
  }

  /** Gives the work a folder, and a function that installs into it; removes the folder afterwards. */
  private async inFolder<T>(
    until: number,
    work: (install: (dependencies: Record<string, string>) => Promise<InstalledPackage[]>, folder: string) => Promise<T>,
  ): Promise<T> {
    const { store } = this.settings;
    const { uid, jail, exchanges } = this.tools;
    const folder = join(store, `install-${randomBytes(8).toString('hex')}`);
    const downloads = join(store, 'downloads');
    try {
      await this.cleanStore(downloads);
      await makeFolderFor(uid, downloads);
      await makeFolderFor(uid, folder);
    } catch (error) {
      throw new SandboxUnavailable(`Packages cannot be installed: ${store} cannot be written to (${(error as Error).message})`);
    }
    try {
      const npm = await readNpmSettings(this.settings.env).catch((error: Error) => {
        throw new SandboxUnavailable(`Packages cannot be installed: npm's settings cannot be read (${error.message})`);
      });
      const tools: InstallTools = { jail, exchanges, uid, npm, limits: this.limits, work: folder, store: downloads };
      return await work(async (dependencies) => {
        const failure = await npmInstall(dependencies, tools, until);
        if (failure?.kind === 'broken') throw new SandboxUnavailable(`Packages cannot be installed: ${failure.message}`);
        if (failure?.kind === 'missing') throw new ComponentRejected(`${failure.message}. ${this.available()}`);
        if (failure?.kind === 'rejected') throw new ComponentRejected(failure.message);
        if (failure?.kind === 'failed')
          throw new ComponentRejected(`npm cannot install ${Object.keys(dependencies).join(', ')}: ${failure.message}`);
        if (failure)
          throw new RegistryUnreachable(
            `${failure.message}, and the packages ${Object.keys(dependencies).join(', ')} were not installed before. ${this.available()}`,
          );
        return installedPackages(folder);
      }, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  private async check(packages: InstalledPackage[], work: string): Promise<void> {
    if (packages.length > this.limits.packages)
      throw new ComponentRejected(`The packages need ${packages.length} packages in total; the limit is ${this.limits.packages}`);
    for (const { name, version, path, hasInstallScript } of packages) {
      const native = await nativeFile(join(work, path));
      if (native)
        throw new ComponentRejected(`The package ${name}@${version} contains native code (${native}), which cannot run in the sandbox`);
      if (hasInstallScript && !isListed(name, this.settings.list))
        throw new ComponentRejected(
          `The package ${name}@${version} runs a script when it is installed, which Sluice does not execute. If the package works without it, the ` +
            'operator can name it in SLUICE_PACKAGES_LIST',
        );
    }
  }

  /** Empties a store that has become too large, and removes what a killed process has left. */
  private async cleanStore(downloads: string): Promise<void> {
    if (performance.now() - this.storeCheckedAt < checkStoreMs) return;
    this.storeCheckedAt = performance.now();
    const { store } = this.settings;
    for (const name of await readdir(store).catch(() => [])) {
      const { mtimeMs } = await stat(join(store, name)).catch(() => ({ mtimeMs: Infinity }));
      if (/^(install|old)-/.test(name) && Date.now() - mtimeMs > unusedMs) await rm(join(store, name), { recursive: true, force: true });
    }
    const { bytes } = await folderSize(downloads, { files: Infinity, bytes: this.limits.storeBytes });
    if (bytes <= this.limits.storeBytes) return;
    const old = join(dirname(downloads), `old-${randomBytes(8).toString('hex')}`);
    // Another replica may do the same
    await rename(downloads, old).catch(() => undefined);
    await rm(old, { recursive: true, force: true });
  }
}

class RegistryUnreachable extends ComponentRejected {}

/** One range for each name; further ranges of it are installed under other names. */
function dependenciesOf(wanted: Wanted[]): { dependencies: Record<string, string>; names: Map<Wanted, string> } {
  const dependencies: Record<string, string> = {};
  const names = new Map<Wanted, string>();
  const known = new Map<string, string>();
  for (const each of wanted) {
    const range = each.range ?? 'latest';
    const key = `${each.name}@${range}`;
    let name = known.get(key);
    if (name === undefined) {
      const isFirst = !Object.hasOwn(dependencies, each.name);
      name = isFirst ? each.name : `sluice-other-${known.size}`;
      dependencies[name] = isFirst ? range : `npm:${key}`;
      known.set(key, name);
    }
    names.set(each, name);
  }
  return { dependencies, names };
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
  return { message: `"${specifier}": version ${version} is used, which is part of Sluice, because ${why}`, line, column: null };
}

function refusal({ specifier, line }: PackageImport, why: string): ComponentRejected {
  return new ComponentRejected(`The module "${specifier}" ${why}${line === null ? '' : ` (line ${line})`}`, line);
}
