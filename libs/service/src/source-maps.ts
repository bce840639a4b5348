import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapping, type SourceMapPayload } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

// Loaded by `--import`, so that the stacks of errors name lines of our sources. Node's own support keeps every map that it has parsed: 2 to 7 MB in each
// service that had to wait for its stores. Packages are left out, as in the bundles of the apps: their maps only show where in its sources a package has thrown an error.

/** The errors of a burst need the same maps. */
const KEPT_MS = 10_000;
const PACKAGES = /[/\\]node_modules[/\\]/;

/** By file; null: the file has none. */
const maps = new Map<string, SourceMap | null>();

function mapOf(file: string): SourceMap | null {
  if (maps.size === 0) setTimeout(() => maps.clear(), KEPT_MS).unref();
  let map = maps.get(file);
  if (map === undefined) maps.set(file, (map = readMap(file)));
  return map;
}

function readMap(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    return null;
  }
}

/** One line of a stack, such as `Outbox.send (/sluice/libs/outbox/src/outbox.ts:20:5)`. */
function describe(site: NodeJS.CallSite & { toString(): string }): string {
  const text = site.toString();
  const url = site.getFileName();
  const [line, column] = [site.getLineNumber(), site.getColumnNumber()];
  if (!url?.startsWith('file:') || line === null || column === null || PACKAGES.test(url)) return text;
  try {
    const file = fileURLToPath(url);
    const found: Partial<SourceMapping> = mapOf(file)?.findEntry(line - 1, column - 1) ?? {};
    const { originalSource, originalLine = 0, originalColumn = 0, generatedLine } = found;
    // a part without a source, or the last mapping of an earlier line
    if (originalSource === undefined || generatedLine !== line - 1) return text;
    return text.replace(
      `${url}:${line}:${column}`,
      () => `${resolve(file, '..', originalSource)}:${originalLine + 1}:${originalColumn + 1}`,
    );
  } catch {
    return text;
  }
}

/** The first line of a stack. Like Node, it shows the codes of Node's errors. */
function titleOf(error: Error): string {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && code.startsWith('ERR_')) return `${error.name} [${code}]: ${error.message}`;
  return Error.prototype.toString.call(error);
}

Error.prepareStackTrace = (error, sites) => [titleOf(error), ...sites.map(describe)].join('\n    at ');
