import { readFileSync } from 'node:fs';
import { createRequire, findPackageJSON, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { getCallSites } from 'node:util';
import { builtIns, closedBuiltIns } from './built-ins.js';

// Part of the contract with component code. It contains only the identity function, because the package of that name brings a TypeScript compiler.
const types = '@pipedream/types';
const identity = (component: unknown): unknown => component;
const typesExports = { defineApp: identity, defineAction: identity, defineSource: identity, defineComponent: identity };

const runnerUrl = pathToFileURL(__filename).href;
const componentScheme = 'component:';
const namedScheme = 'curated-named:';
const installedScheme = 'installed:';

/** An import of a module that components cannot load, as an error for the author. */
export class ModuleRefused extends Error {
  /** Node's code, by which packages recognise that an optional one is absent */
  readonly code = 'MODULE_NOT_FOUND';

  constructor(
    readonly specifier: string,
    reason: string,
  ) {
    super(`The module "${specifier}" ${reason}`);
  }
}

/** The module of one component's installed packages. */
type Installed = Record<string, unknown>;

/**
 * The list of modules for `import` and `require`. It gives authors a clear error that names the list; the jail is what protects everything else.
 */
export class CuratedModules {
  private readonly require = createRequire(runnerUrl);
  private readonly names: Set<string>;
  private readonly componentSources = new Map<string, string>();
  /** By the folder of the component's URL */
  private readonly installed = new Map<string, Installed>();

  constructor(names: string[]) {
    this.names = new Set([...names, types]);
    // A bundle is an ES module, and a CommonJS neighbour in it still calls `require`; the bundler puts a call of this before its code
    Object.assign(globalThis, { [Symbol.for('sluice.require')]: this.requireOf });
    // So do other bundlers, and authors. Whose `require` it is follows from the code that reads it
    Object.defineProperty(globalThis, 'require', {
      get: () => this.requireOf(getCallSites(2)[1]?.scriptName ?? ''),
      set: (value: unknown) => Object.defineProperty(globalThis, 'require', { value, writable: true, configurable: true }),
      configurable: true,
    });
    registerHooks({
      resolve: (specifier, context, next) => {
        if (specifier.startsWith(componentScheme) || this.componentSources.has(specifier)) return { url: specifier, shortCircuit: true };
        if (!context.parentURL?.startsWith(componentScheme)) return next(specifier, context);
        const installed = this.installed.get(folderOf(context.parentURL));
        if (installed && `import ${specifier}` in installed)
          return {
            url: installedScheme + encodeURIComponent(JSON.stringify([folderOf(context.parentURL), specifier])),
            shortCircuit: true,
          };
        return this.resolveImport(specifier, (name) => next(name, { ...context, parentURL: runnerUrl }));
      },
      load: (url, context, next) => {
        const source = this.componentSources.get(url);
        if (source !== undefined) return { format: 'module', source, shortCircuit: true };
        if (url.startsWith(installedScheme)) return { format: 'module', source: this.installedExports(url), shortCircuit: true };
        if (url.startsWith(namedScheme)) return { format: 'module', source: this.namedExports(url), shortCircuit: true };
        return next(url, context);
      },
    });
  }

  /** Evaluates code as an ES module; `url` is what its stack frames show. */
  import(url: string, code: string): Promise<Record<string, unknown>> {
    this.componentSources.set(url, code);
    return import(url) as Promise<Record<string, unknown>>;
  }

  /**
   * Evaluates the packages that were installed for a component, before it. All sources of the same code share them.
   * @param url of the component
   * @param code a PackageBundle's
   */
  async install(url: string, code: string): Promise<void> {
    const file = packagesOf(folderOf(url));
    this.componentSources.set(file, code);
    this.installed.set(folderOf(url), (await import(file)) as Installed);
  }

  /**
   * Whether it is a package that could be installed: neither one of the list nor one of Node's, nor a path. A version asks for the package, not for
   * Node's module of that name. Node's own `isBuiltin` does not know the modules that `closeBuiltIns` has closed.
   */
  mayBeInstalled(specifier: string): boolean {
    if (isPath(specifier) || isUrl(specifier) || isOfNode(specifier) || specifier.startsWith(types)) return false;
    try {
      this.checked(specifier);
      // One of the list, of a version that the list may not have
      return /.@[^/]*$/.test(specifier);
    } catch {
      return true;
    }
  }

  /** The `require` of a component. @param url of the component, or of other code, which has no installed packages */
  readonly requireOf = (url: string) => {
    const installed = (specifier: string): unknown => this.installed.get(folderOf(url))?.[`require ${specifier}`];
    const require = (specifier: string): unknown => {
      const load = installed(specifier);
      return typeof load === 'function' ? (load as () => unknown)() : this.listed(specifier);
    };
    const resolve = (specifier: string): string => {
      // Packages ask for their own files while they are loaded (`require.resolve("./worker.js")`). They are not in the bundle
      if (!isPath(specifier) && installed(specifier) === undefined) this.checked(specifier);
      return specifier;
    };
    return Object.assign(require, { resolve });
  };

  /** Loads a module of the list. */
  private listed(specifier: string): unknown {
    const name = this.checked(specifier);
    return name === types ? typesExports : this.require(this.pathOf(name, specifier));
  }

  /** @throws ModuleRefused if a package of the list has no such file */
  private pathOf(name: string, specifier: string): string {
    try {
      return this.require.resolve(name);
    } catch {
      throw new ModuleRefused(specifier, 'does not exist in its package');
    }
  }

  /** A message to the author of a component that imports a name which a module does not export. @param url of the component */
  lacksExport(url: string, specifier: string, name: string): string {
    const message = `The module "${specifier}" has ${name === 'default' ? 'no default export' : `no export "${name}"`}`;
    const [root = ''] = /^(?:@[^/@]+\/)?[^/@]+/.exec(specifier) ?? [];
    if (isOfNode(specifier) || root === types) return message;
    const isInstalled = `import ${specifier}` in (this.installed.get(folderOf(url)) ?? {});
    const version = isInstalled ? '' : ` in version ${shippedVersion(root)}, which is part of Sluice`;
    return `${message}${version}. Another version can be imported as "${root}@VERSION"`;
  }

  /** Loads packages ahead of time. A package that fails here fails again, with its reason, when it is used. */
  warm(names: string[]): void {
    for (const name of names) {
      try {
        this.require(name);
      } catch {
        continue;
      }
    }
  }

  private resolveImport(
    specifier: string,
    next: (name: string) => { url: string; format?: string | null },
  ): ReturnType<typeof next> & { shortCircuit?: boolean } {
    const name = this.checked(specifier);
    if (name === types) return { url: namedScheme + types, shortCircuit: true };
    if (name.startsWith('node:')) return { url: name, format: 'builtin', shortCircuit: true };
    let resolved: ReturnType<typeof next>;
    try {
      resolved = next(name);
    } catch {
      // `dayjs/plugin/utc`, `lodash/get`: paths without an extension that only require understands
      resolved = { url: pathToFileURL(this.pathOf(name, specifier)).href };
    }
    if (!this.isCommonJs(resolved)) return resolved;
    return { url: namedScheme + name, shortCircuit: true };
  }

  private isCommonJs(resolved: { url: string; format?: string | null }): boolean {
    if (resolved.format) return resolved.format === 'commonjs';
    return !resolved.url.endsWith('.mjs');
  }

  /** One of the installed packages as a separate module, which names all of its exports. */
  private installedExports(url: string): string {
    const [folder, specifier] = JSON.parse(decodeURIComponent(url.slice(installedScheme.length))) as [string, string];
    const name = `import ${specifier}`;
    const exports = this.installed.get(folder)![name] as Record<string, unknown> | (() => never);
    // The package cannot be used, and the component can do without it
    if (typeof exports === 'function') return exports();
    const names = Object.keys(exports).filter((key) => key !== 'default');
    return [
      `import { ${JSON.stringify(name)} as exports } from ${JSON.stringify(packagesOf(folder))};`,
      ...('default' in exports ? ['export default exports.default;'] : []),
      ...names.map((key, index) => `const e${index} = exports[${JSON.stringify(key)}];\nexport { e${index} as ${JSON.stringify(key)} };`),
    ].join('\n');
  }

  /** Returns a CommonJS package as a module that names all of its exports. Node detects them only in some packages (`import { get } from "lodash"` fails). */
  private namedExports(url: string): string {
    const name = url.slice(namedScheme.length);
    if (name === types)
      return Object.keys(typesExports)
        .map((key) => `export const ${key} = (component) => component;`)
        .join('\n');
    const exports = this.require(name) as Record<string, unknown>;
    const names = Object.keys(exports).filter((key) => /^[A-Za-z_$][\w$]*$/.test(key) && key !== 'default');
    return [
      `import exports from ${JSON.stringify(pathToFileURL(this.require.resolve(name)).href)};`,
      'export default exports;',
      ...names.map((key, index) => `const e${index} = exports[${JSON.stringify(key)}];\nexport { e${index} as ${key} };`),
    ].join('\n');
  }

  /** @throws ModuleRefused if a module is not on the list */
  private checked(specifier: string): string {
    // Existing components write a version into the import: `axios@0.19.2`, `lodash@^4.17.20`
    const match = /^(?:node:)?((?:@[^/@]+\/)?[^/@.][^/@]*(?:\/[^@]*)?)(?:@[^/]+)?$/.exec(specifier);
    const name = match?.[1] ?? specifier;
    if (builtIns.includes(name)) return `node:${name}`;
    const root = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
    if (this.names.has(root)) return name;
    throw new ModuleRefused(specifier, this.refusal(specifier));
  }

  private refusal(specifier: string): string {
    if (isPath(specifier))
      return 'cannot be loaded: a component is one file; `sluice deploy FILE` and component_url bundle it with its relative imports';
    if (isOfNode(specifier)) return `is not available. Available modules of Node: ${builtIns.join(', ')}`;
    if (isUrl(specifier)) return 'cannot be loaded: import packages by their names in the registry of npm, such as "lodash" or "lodash@4"';
    const packages = [...this.names].sort().join(', ');
    const others = 'Others are installed when the component is created, if the code imports them by a literal name';
    return `is not available. Available packages: ${packages}. ${others}. Node's own modules: ${builtIns.join(', ')}`;
  }
}

const isPath = (specifier: string): boolean => /^[./]/.test(specifier);

const isUrl = (specifier: string): boolean => /^[a-z][a-z+.-]*:/i.test(specifier);

const isOfNode = (specifier: string): boolean =>
  specifier.startsWith('node:') ||
  builtIns.includes(specifier) ||
  closedBuiltIns.some((name) => specifier === name || specifier.startsWith(`${name}/`));

const shippedVersion = (name: string): string =>
  (JSON.parse(readFileSync(findPackageJSON(name, runnerUrl)!, 'utf8')) as { version: string }).version;

const folderOf = (url: string): string => url.slice(0, url.lastIndexOf('/'));

/** The file of the packages of a component, by its folder, whose name begins with the hash of the code. */
const packagesOf = (folder: string): string => `file:///${folder.slice(folder.lastIndexOf('/') + 1).split('_', 1)[0]}/packages.mjs`;
