import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

// Loaded by `--import`: the stacks of errors name lines of our sources. The support that Node has keeps each map that a stack has needed: 3 to 7 MB in each
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

/** As V8 prints it. */
const textOf = (site: unknown): string => String(site);

/** One line of a stack, such as `Outbox.send (/sluice/libs/outbox/src/outbox.ts:20:5)`. */
function describe(site: NodeJS.CallSite): string {
  const text = textOf(site);
  const url = site.getFileName();
  const [line, column] = [site.getLineNumber(), site.getColumnNumber()];
  if (!url?.startsWith('file:') || line === null || column === null || PACKAGES.test(url)) return text;
  const file = fileURLToPath(url);
  const found = mapOf(file)?.findEntry(line - 1, column - 1);
  // without a mapping in this line, the nearest one before it is found
  if (!found || !('originalSource' in found) || found.generatedLine !== line - 1) return text;
  const source = resolve(file, '..', found.originalSource);
  return text.replace(`${url}:${line}:${column}`, () => `${source}:${found.originalLine + 1}:${found.originalColumn + 1}`);
}

Error.prepareStackTrace = (error, sites) => {
  const title = Error.prototype.toString.call(error);
  try {
    return [title, ...sites.map(describe)].join('\n    at ');
  } catch {
    return [title, ...sites.map(textOf)].join('\n    at ');
  }
};
