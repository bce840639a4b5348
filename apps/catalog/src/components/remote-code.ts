import { Injectable } from '@nestjs/common';
import { bundleComponent, Invalid, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { CodeFetcher } from './code-fetcher.js';

const MAX_FILES = 50;
const BUNDLE_TIMEOUT_MS = 15_000;

/** A component's code from a URL: one file, or a bundle of it and the neighbours that it imports by relative path. */
@Injectable()
export class RemoteCode {
  constructor(
    private readonly fetcher: CodeFetcher,
    private readonly messages: Messages,
  ) {}

  /** Throws Invalid, naming the code that cannot be fetched. */
  async read(ownerId: UserId, componentUrl: string): Promise<string> {
    const entry = await this.fetcher.fetch(componentUrl);
    const waiting = relativeImports(entry.code).map((specifier) => ({ specifier, from: entry.url }));
    if (waiting.length === 0) return entry.code;
    const files = new Map([[entry.url.pathname, entry.code]]);
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const found = await this.neighbour(next.specifier, next.from, files);
      if (!found) continue;
      if (files.size >= MAX_FILES)
        throw new Invalid([{ field: 'component_url', message: `component_url imports more than ${MAX_FILES} files` }]);
      files.set(found.url.pathname, found.code);
      waiting.push(...relativeImports(found.code).map((specifier) => ({ specifier, from: found.url })));
    }
    const path = (pathname: string) => pathname.slice(1);
    const bundle = {
      entry: path(entry.url.pathname),
      files: Object.fromEntries([...files].map(([name, code]) => [path(name), code])),
      owner_id: ownerId,
      answer_by: Date.now() + BUNDLE_TIMEOUT_MS,
    };
    return (await this.messages.request(bundleComponent, bundle, { key: ownerId, timeoutMs: BUNDLE_TIMEOUT_MS })).code;
  }

  /** Undefined if it has been fetched already or cannot be fetched: the bundler reports whether it is really needed, with file and line. */
  private async neighbour(
    specifier: string,
    from: URL,
    files: ReadonlyMap<string, string>,
  ): Promise<{ code: string; url: URL } | undefined> {
    for (const name of candidates(specifier)) {
      const url = new URL(name, from);
      if (files.has(url.pathname)) return undefined;
      try {
        return { code: (await this.fetcher.fetch(url.href)).code, url };
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
      }
    }
    return undefined;
  }
}

const patterns = [
  /\bfrom\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\bimport\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\brequire\s*\(\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
];

/**
 * The neighbours that a file may import, as it writes them (`../github.app.mjs`), each once. It reads text, not JavaScript: one in a comment is
 * found, too, so a file that cannot be fetched is not an error until the bundler misses it.
 */
export function relativeImports(code: string): string[] {
  return [...new Set(patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[2]!)))];
}

/** The files that a specifier may denote, in the order of the attempts. */
export function candidates(specifier: string): string[] {
  if (/\.(?:m?js|cjs|m?ts|json)$/.test(specifier)) return [specifier];
  return ['.mjs', '.js', '.ts', '/index.mjs', '/index.js'].map((ending) => specifier.replace(/\/$/, '') + ending);
}
