import { SourceMap, type SourceMapPayload, type SourceMapping } from 'node:module';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { CliError } from '../session/errors.js';
import { readText } from '../session/files.js';

/** `file:line:column` of a position in the code of a component; parts that are not known are left out. */
export type Place = (line: number | null, column: number | null) => string;

/** A component in a file, as it is sent to the API. */
export interface ComponentFile {
  /** One module: the file itself, or a bundle, with its source map, of it and the files that it imports by relative path. */
  code: string;
  /** The absolute paths of the files that it consists of. */
  files: string[];
  /** Replaces the positions in a stack of the component by those in the author's files. */
  located(stack: string): string;
  /** The place in the author's files of a position in `code`. */
  placeOf: Place;
}

/** The places in code that was not bundled. */
export const placesIn =
  (file: string): Place =>
  (line, column) =>
    [file, line, column].filter((part) => part !== null).join(':');

/** The default name of a source of this file or URL. */
export const nameOf = (path: string): string => basename(path, extname(path));

/** The API's default limit. A larger bundle is sent without its map. */
const MAX_CODE_BYTES = 512 * 1024;

/** An import of a neighbour: `from './x'`, `import './x'`, `import('./x')`, `require('./x')`. */
const RELATIVE_IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["']\.{1,2}\//;

/** The endings that an import may omit, in the order of the attempts: as for components by URL and for `component check`. */
const MODULE_ENDINGS = ['.ts', '.mjs', '.js', '.json'];

/** The `require` of the module's component, which finds the packages that Sluice has installed for it. */
const REQUIRE = 'const require = globalThis[Symbol.for("sluice.require")](import.meta.url);';

/** Reads a component from a file. A file without neighbours is sent as it is, so that its lines stay the same. */
export async function readComponent(file: string): Promise<ComponentFile> {
  const path = resolve(file);
  const text = readText(file);
  if (!RELATIVE_IMPORT.test(text))
    return { code: text, files: [path], located: (stack) => located(stack, () => file), placeOf: placesIn(file) };
  return bundled(path, file);
}

async function bundled(path: string, shown: string): Promise<ComponentFile> {
  const esbuild = await import('esbuild').catch(() => {
    throw new CliError(
      `${shown} imports other files, which needs the package esbuild beside sluice: npm install esbuild, with --global if sluice is installed so`,
    );
  });
  const folder = dirname(path);
  try {
    const build = (format: 'esm' | 'cjs') =>
      esbuild.build({
        ...{ entryPoints: [path], absWorkingDir: folder, outfile: 'component.mjs' },
        ...{
          bundle: true,
          write: false,
          metafile: true,
          sourcemap: 'inline',
          sourcesContent: false,
          platform: 'node',
          format,
          target: 'es2024',
          logLevel: 'silent',
        },
        resolveExtensions: MODULE_ENDINGS,
        // packages are resolved by Sluice, also for CommonJS neighbours of an ES module
        packages: 'external',
        banner: { js: format === 'esm' ? REQUIRE : '' },
      });
    const module = await build('esm');
    // An ES module is strict. CommonJS is not: it may assign to variables that it does not declare
    const isCommonJs = module.metafile.inputs[basename(path)]?.format === 'cjs';
    const { outputFiles, metafile } = isCommonJs ? await build('cjs') : module;
    const files = Object.keys(metafile.inputs).map((input) => resolve(folder, input));
    // the bundler has replaced bytes that are not UTF-8
    for (const each of files) readText(relative(process.cwd(), each));
    const code = outputFiles[0]!.text;
    const at = code.lastIndexOf('\n//# sourceMappingURL=');
    const map = new SourceMap(JSON.parse(Buffer.from(code.slice(code.lastIndexOf(',') + 1), 'base64').toString()) as SourceMapPayload);
    const shownOf = (source: string): string => relative(process.cwd(), join(folder, source));
    // the API then reports positions in the bundle
    const isTooLarge = Buffer.byteLength(code) > MAX_CODE_BYTES;
    return {
      code: isTooLarge ? code.slice(0, at + 1) : code,
      files,
      located: (stack) => located(stack, (source) => (isTooLarge ? `the bundle of ${shown}` : shownOf(source))),
      placeOf: (line, column) => {
        if (line === null) return shown;
        const { originalSource, originalLine, originalColumn }: Partial<SourceMapping> = map.findEntry(line - 1, (column ?? 1) - 1);
        if (originalSource === undefined || originalLine === undefined || originalColumn === undefined) return shown;
        return placesIn(shownOf(originalSource))(originalLine + 1, column === null ? null : originalColumn + 1);
      },
    };
  } catch (error) {
    const { errors = [] } = error as { errors?: { text: string; location: { file: string; line: number; column: number } | null }[] };
    if (errors.length === 0) throw error;
    const lines = errors.map(({ text, location }) =>
      location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text,
    );
    throw new CliError(lines.join('\n'));
  }
}

/** Replaces the runtime's address of a component, `component:///0a1b/parts/x.mjs`, by that of the author's file. */
const located = (stack: string, fileOf: (source: string) => string): string =>
  stack.replace(/component:\/\/\/\w+\/([^\s:]+)(?=:\d)/g, (_, source: string) => fileOf(source));
