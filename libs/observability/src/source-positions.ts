import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

// Positions are translated when a stack is logged. Node's own support would translate each stack that is read, and Node itself reads the stack of each error
// with which a stream is destroyed, such as every idle connection that is closed. It also keeps each parsed map: 2 to 7 MB in each service.

/** The errors of a burst need the same map, which takes a tenth of a second to parse. */
const KEPT_MS = 10_000;
const POSITION = /^:(\d+):(\d+)/;

/** By the URL of the file; null: it has none. */
const maps = new Map<string, SourceMap | null>();

function mapOf(url: string): SourceMap | null {
  if (maps.size === 0) setTimeout(() => maps.clear(), KEPT_MS).unref();
  let map = maps.get(url);
  if (map === undefined) maps.set(url, (map = readMap(url)));
  return map;
}

function readMap(url: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    return null;
  }
}

/**
 * A stack in which positions in a bundle are those in our sources, such as `Outbox.send (/sluice/libs/outbox/src/outbox.ts:20:5)`. Positions without a
 * source, such as those in packages, stay as they are, and so do those in other files: a stack may contain text from users. A value
 * that is not a text is returned unchanged.
 *
 * @param bundle the URL of the file that this module is part of
 */
export function withSourcePositions(stack: unknown, bundle = import.meta.url): unknown {
  if (typeof stack !== 'string') return stack;
  const [before, ...positions] = stack.split(bundle);
  const translated = positions.map((text) => {
    const [at = '', line, column] = POSITION.exec(text) ?? [];
    const source = sourceOf(bundle, Number(line), Number(column));
    return source === undefined ? `${bundle}${text}` : `${source}${text.slice(at.length)}`;
  });
  return [before, ...translated].join('');
}

/** undefined: it is in no source. */
function sourceOf(bundle: string, line: number, column: number): string | undefined {
  if (Number.isNaN(line)) return undefined;
  const found = mapOf(bundle)?.findEntry(line - 1, column - 1);
  // a part without a source, or the last position of an earlier line
  if (!found || !('originalSource' in found) || found.originalSource === undefined || found.generatedLine !== line - 1) return undefined;
  return `${resolve(fileURLToPath(bundle), '..', found.originalSource)}:${found.originalLine + 1}:${found.originalColumn + 1}`;
}
