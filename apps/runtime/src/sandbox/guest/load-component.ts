import { createRequire, stripTypeScriptTypes } from 'node:module';
import { compileFunction, constants } from 'node:vm';
import type { PackageImport } from '../sandbox.js';
import { firstPlace, learnAuthorLines, type Place, withAuthorLines } from './author-lines.js';
import { guestError } from './guest-error.js';
import { type CuratedModules, ModuleRefused } from './modules.js';

export type Component = Record<string, unknown>;

/** The code cannot be a component. */
export class NoComponent extends Error {
  /** @param place where it is known; the message names it, too */
  constructor(
    message: string,
    readonly place: Place = { file: null, line: null },
  ) {
    const { file, line } = place;
    super(line === null ? message : `${message} (${file === null ? '' : `${file}, `}line ${line})`);
  }
}

/** An error while the component was loaded, as a message to its author. `imports`: an import statement leaves no line in a stack. */
export function loadingError(thrown: unknown, imports: PackageImport[]): NoComponent {
  if (thrown instanceof NoComponent) return thrown;
  const { name, message, stack } = guestError(thrown);
  if (thrown instanceof ModuleRefused) {
    const place = firstPlace(stack);
    const line = place.line ?? imports.find(({ specifier }) => specifier === thrown.specifier)?.line ?? null;
    return new NoComponent(message, { ...place, line });
  }
  return new NoComponent(`The code threw an error while it was loaded: ${name}: ${message}`, firstPlace(stack));
}

/** The code of a component as the parent sends it. */
export interface SentCode {
  hash: string;
  /** Absent if it was sent before. */
  code?: string;
  /** The module of the packages that were installed for it. */
  packages?: string;
}

/** A component's code in this process. */
interface Known {
  code: string;
  packages: string | undefined;
  /** By `variables`: those of a module belong to one source and its values, as if each had a process. */
  evaluated: Map<string, Promise<Component>>;
  evaluations: number;
}

/**
 * Evaluates components, each once for each source and its values. V8 decides the kind of code: CommonJS if it compiles as the body of a function, otherwise an
 * ES module, otherwise TypeScript of either kind.
 */
export class ComponentLoader {
  private readonly known = new Map<string, Known>();

  constructor(private readonly modules: CuratedModules) {}

  load({ hash, code = '', packages }: SentCode, variables: string): Promise<Component> {
    let known = this.known.get(hash);
    if (!known) this.known.set(hash, (known = { code, packages, evaluated: new Map(), evaluations: 0 }));
    let component = known.evaluated.get(variables);
    if (!component) {
      const { evaluated } = known;
      // A new address for each evaluation, because Node remembers that a module has failed
      const number = known.evaluations++;
      component = this.evaluate(`${hash.slice(0, 16)}${number === 0 ? '' : `_${number}`}`, known);
      component.catch(() => evaluated.delete(variables));
      evaluated.set(variables, component);
    }
    return component;
  }

  private async evaluate(folder: string, { code, packages }: Known): Promise<Component> {
    const url = `component:///${folder}/component.js`;
    if (packages) await this.modules.install(url, packages);
    learnAuthorLines(url, code);
    try {
      return asComponent(await this.evaluateJavaScript(url, code));
    } catch (error) {
      if (!isParseError(error)) throw error;
    }
    const javaScript = javaScriptOf(code, url);
    learnAuthorLines(url, javaScript);
    try {
      // Another address, because the loader remembers that the first one failed. The stack still shows `url`
      return asComponent(await this.evaluateJavaScript(url.replace('.js', '.ts'), javaScript));
    } catch (error) {
      if (!isParseError(error)) throw error;
      const place = placeOf(error);
      const [, specifier, name] = /^The requested module '(.+)' does not provide an export named '(.+)'$/.exec(error.message) ?? [];
      if (specifier && name) throw new NoComponent(this.modules.lacksExport(url, specifier, name), place);
      // V8 reports no line of a module's early errors, such as a name that is declared twice
      throw doesNotParse(error.message, place.line === null ? { file: null, line: outlineProgram().lineOfError(javaScript) } : place);
    }
  }

  private async evaluateJavaScript(url: string, code: string): Promise<unknown> {
    const parameters = ['exports', 'require', 'module', '__filename', '__dirname'];
    let body;
    try {
      body = compileFunction(code, parameters, { filename: url, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER });
    } catch (error) {
      // "await is only valid in …", "Cannot use 'import.meta' outside a module", …
      if (!/\b(import|export|await)\b/.test((error as Error).message) && !/^\s*(import|export)\b/m.test(code)) throw error;
      return (await this.modules.import(url, code)).default;
    }
    const module = { exports: {} as Record<string, unknown> };
    body.call(module.exports, module.exports, this.modules.requireOf(url), module, url, '/');
    return module.exports.__esModule || isOnlyDefault(module.exports) ? module.exports.default : module.exports;
  }
}

function isOnlyDefault(exports: unknown): boolean {
  return typeof exports === 'object' && exports !== null && Object.keys(exports).join() === 'default';
}

/** A SyntaxError that the component's code throws while it runs (`JSON.parse("…")`) is an ordinary error, not a sign of TypeScript. */
function isParseError(error: unknown): error is SyntaxError {
  return error instanceof SyntaxError && !/\n\s+at .*component:\/\/\//.test(error.stack ?? '');
}

/** The program with the parser, which is loaded when it is needed: runs of JavaScript need none. */
export const outlineProgram = (): typeof import('./outline.js') =>
  createRequire(__filename)('./outline.cjs') as typeof import('./outline.js');

function javaScriptOf(code: string, url: string): string {
  const stripped = stripTypes(code, url);
  // It was JavaScript; only the comment with the URL was added
  if (stripped.startsWith(code)) return stripped;
  return outlineProgram().withoutTypeImports(stripped);
}

function stripTypes(code: string, sourceUrl: string, mode: 'strip' | 'transform' = 'strip'): string {
  try {
    return stripTypeScriptTypes(code, { mode, sourceMap: mode === 'transform', sourceUrl });
  } catch (error) {
    const { code: reason, message } = error as NodeJS.ErrnoException;
    // Enums and namespaces need generated code, which changes the line numbers, so it has a source map
    if (reason === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' && mode === 'strip') return stripTypes(code, sourceUrl, 'transform');
    // The stack of the parser, which is WebAssembly, is used up. Node takes that for a bug in Node
    if (reason === 'ERR_INTERNAL_ASSERTION') throw doesNotParse('it is nested too deeply');
    // V8 does not report the line of a module's syntax error, and in TypeScript it stops at the first annotation; this parser reports both
    throw doesNotParse(message, placeOf(error as Error));
  }
}

const doesNotParse = (reason: string, place?: Place): NoComponent => new NoComponent(`The code does not parse: ${reason}`, place);

const placeOf = ({ stack = '' }: Error): Place => firstPlace(withAuthorLines(stack));

function asComponent(value: unknown): Component {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || Object.keys(value).length === 0)
    throw new NoComponent(
      'The code exports no component: it has to export an object with a `name`, by `export default {…}` or `module.exports = {…}`',
    );
  return value as Component;
}
