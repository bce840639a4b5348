import { createRequire, isBuiltin, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { builtIns } from './built-ins.js';

// Part of the contract with component code. It contains only the identity function, because the package of that name brings a TypeScript compiler.
const types = '@pipedream/types';
const identity = (component: unknown): unknown => component;
const typesExports = { defineApp: identity, defineAction: identity, defineSource: identity, defineComponent: identity };

const runnerUrl = pathToFileURL(__filename).href;
const componentScheme = 'component:';
const namedScheme = 'curated-named:';

/**
 * The list of modules for `import` and `require`. It gives authors a clear error that names the list; the jail is what protects everything else.
 */
export class CuratedModules {
  private readonly require = createRequire(runnerUrl);
  private readonly names: Set<string>;
  private readonly componentSources = new Map<string, string>();

  constructor(names: string[]) {
    this.names = new Set([...names, types]);
    // A bundle is an ES module, and a CommonJS neighbour in it still calls `require`
    Object.assign(globalThis, { require: this.requireFor });
    registerHooks({
      resolve: (specifier, context, next) => {
        if (specifier.startsWith(componentScheme)) return { url: specifier, shortCircuit: true };
        if (!context.parentURL?.startsWith(componentScheme)) return next(specifier, context);
        return this.resolveImport(specifier, (name) => next(name, { ...context, parentURL: runnerUrl }));
      },
      load: (url, context, next) => {
        if (url.startsWith(componentScheme)) return { format: 'module', source: this.componentSources.get(url)!, shortCircuit: true };
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

  /** The `require` of a CommonJS component. */
  readonly requireFor = (specifier: string): unknown => {
    const name = this.checked(specifier);
    return name === types ? typesExports : this.require(name);
  };

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
      resolved = { url: pathToFileURL(this.require.resolve(name)).href };
    }
    if (!this.isCommonJs(resolved)) return resolved;
    return { url: namedScheme + name, shortCircuit: true };
  }

  private isCommonJs(resolved: { url: string; format?: string | null }): boolean {
    if (resolved.format) return resolved.format === 'commonjs';
    return !resolved.url.endsWith('.mjs');
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

  /** @throws an error for the author if a module is not on the list */
  private checked(specifier: string): string {
    // Existing components write a version into the import: `axios@0.19.2`, `lodash@^4.17.20`
    const match = /^(?:node:)?((?:@[^/@]+\/)?[^/@.][^/@]*(?:\/[^@]*)?)(?:@[^/]+)?$/.exec(specifier);
    const name = match?.[1] ?? specifier;
    if (isBuiltin(name) && builtIns.includes(name)) return `node:${name}`;
    const root = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
    if (!isBuiltin(name) && this.names.has(root)) return name;
    throw Object.assign(new Error(this.refusal(specifier)), { code: 'MODULE_NOT_AVAILABLE' });
  }

  private refusal(specifier: string): string {
    if (/^\.{0,2}\//.test(specifier))
      return `The module "${specifier}" cannot be loaded: a component is one file; relative imports work only with component_url`;
    const packages = [...this.names].sort().join(', ');
    return `The module "${specifier}" is not available. Available packages: ${packages}. Node's own modules: ${builtIns.join(', ')}`;
  }
}
