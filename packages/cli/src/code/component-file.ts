import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { CliError, usageError } from '../session/errors.js';

/** A component in a file, as it is sent to the API. */
export interface ComponentFile {
  /** One module: the file itself, or a bundle of it and the files that it imports by relative path. */
  code: string;
  /** The absolute paths of the files that it consists of. */
  files: string[];
  /** Replaces the positions in a stack of the component by those in the author's files. */
  located(stack: string): string;
}

/** The default name of a source of this file or URL. */
export const nameOf = (path: string): string => basename(path, extname(path));

/** An import of a neighbour: `from './x'`, `import './x'`, `import('./x')`, `require('./x')`. */
const RELATIVE_IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["']\.{1,2}\//;

/** Reads a component from a file. A file without neighbours is sent as it is, so that its lines stay the same. */
export async function readComponent(file: string): Promise<ComponentFile> {
  const path = resolve(file);
  const text = readCode(path, file);
  if (!RELATIVE_IMPORT.test(text))
    return { code: text, files: [path], located: (stack) => atLine(stack, ([line, column]) => `${file}:${line}:${column}`) };
  return bundled(path, file);
}

function readCode(path: string, shown: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw usageError(code === 'ENOENT' ? `there is no file ${shown}` : `${shown} cannot be read: ${message}`);
  }
}

async function bundled(path: string, shown: string): Promise<ComponentFile> {
  const esbuild = await import('esbuild').catch(() => {
    throw new CliError(`${shown} imports other files, which needs the package esbuild: install it with npm install --global esbuild`);
  });
  const folder = dirname(path);
  try {
    const { outputFiles, metafile } = await esbuild.build({
      ...{ entryPoints: [path], absWorkingDir: folder, outfile: 'component.mjs' },
      ...{
        bundle: true,
        write: false,
        metafile: true,
        sourcemap: true,
        platform: 'node',
        format: 'esm',
        target: 'es2024',
        logLevel: 'silent',
      },
      // packages are resolved by Sluice
      packages: 'external',
    });
    const [code, map] = ['.mjs', '.map'].map((ending) => outputFiles.find((output) => output.path.endsWith(ending))!.text);
    const sources = new SourceMap(JSON.parse(map!) as SourceMapPayload);
    const located = ([line, column]: Position): string => {
      const found = sources.findEntry(line - 1, column - 1);
      if (!('originalSource' in found)) return `${shown}:${line}:${column}`;
      return `${relative(process.cwd(), join(folder, found.originalSource))}:${found.originalLine + 1}:${found.originalColumn + 1}`;
    };
    return {
      // the comment that names the map, which is not sent
      code: code!.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'),
      files: Object.keys(metafile.inputs).map((input) => resolve(folder, input)),
      located: (stack) => atLine(stack, located),
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

type Position = [line: number, column: number];

/** Replaces each position in the component's module by the text for it. The runtime calls it `component:///…/component.js`. */
const atLine = (stack: string, shown: (position: Position) => string): string =>
  stack.replace(/component:\/\/\/\w+\/component\.[jt]s:(\d+)(?::(\d+))?/g, (_, line: string, column = '1') =>
    shown([Number(line), Number(column)]),
  );
