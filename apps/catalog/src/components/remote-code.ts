import { Injectable } from '@nestjs/common';
import { bundleComponent, Invalid, isInvalid, TimedOut, type UserId } from '#contracts';
import { Messages } from '#messaging';
import { candidates, relativeImports } from '#relative-imports';
import { LimitPerKey } from '#limits';
import { CatalogConfig } from '../catalog.config.js';
import { Absent, CodeFetcher, problem, Unreadable } from './code-fetcher.js';

const MAX_FILES = 50;
/** All files together, as JSON: they travel to the runtime in one message. */
const MAX_FILES_BYTES = 4 * 1024 * 1024;
/** Different ones of one file, as it writes them. */
const MAX_IMPORTS = 1000;
/** A neighbour without an ending takes up to five. */
const MAX_FETCHES = 200;
/** All files together. A server that responds slowly must not keep the catalog busy. */
const READ_MS = 20_000;
const READS_PER_ACCOUNT = 4;
const READS_OF_ALL = 32;
const BUNDLE_TIMEOUT_MS = 15_000;

/** A component's code from a URL: one file, or a bundle of it and the neighbours that it imports by relative path. */
@Injectable()
export class RemoteCode {
  private readonly reads = new LimitPerKey<UserId>(READS_PER_ACCOUNT, READS_OF_ALL);

  constructor(
    private readonly fetcher: CodeFetcher,
    private readonly messages: Messages,
    private readonly config: CatalogConfig,
  ) {}

  /**
   * Throws Invalid, naming the code that cannot be fetched; TooManyRequests; TimedOut.
   *
   * @param until when it has to end, in ms since the epoch
   */
  read(ownerId: UserId, componentUrl: string, until: number): Promise<string> {
    return this.reads.run(ownerId, 'too many components are being fetched from URLs; try again in a moment', async () => {
      const fetches = new Fetches(this.fetcher, until);
      const entry = await fetches.fetch(componentUrl);
      const imports = relativeImports(entry.code);
      if (imports.length === 0) return entry.code;
      const files = await withNeighbours(entry, imports, fetches);
      return this.bundled(ownerId, entry.url, files, until).catch((error: unknown) => {
        // the bundler only knows that a file is not there
        throw isInvalid(error) && fetches.missed ? fetches.missed : error;
      });
    });
  }

  private async bundled(ownerId: UserId, entry: URL, files: ReadonlyMap<string, string>, until: number): Promise<string> {
    const timeoutMs = Math.min(BUNDLE_TIMEOUT_MS, msUntil(until));
    const path = (pathname: string) => (pathname === entry.pathname ? entryPath(pathname, files) : pathname).slice(1);
    const bundle = {
      entry: path(entry.pathname),
      files: Object.fromEntries([...files].flatMap(([name, code]) => namesOf(path(name)).map((each) => [each, code]))),
      owner_id: ownerId,
    };
    const { code } = await this.messages.request(bundleComponent, bundle, { account: ownerId, timeoutMs });
    return Buffer.byteLength(code) > this.config.maxCodeBytes ? withoutSourceMap(code) : code;
  }
}

const msUntil = (time: number): number => Math.max(time - Date.now(), 0);

/** A name of more than 255 bytes cannot be a file's. */
const MAX_NAME_LENGTH = 200;

/** The entry as a file that the bundler can read, in the same folder: the path of its URL may be a folder, lack an ending or be too long. */
function entryPath(pathname: string, files: ReadonlyMap<string, string>): string {
  const path = candidates(pathname).find((each) => each === pathname || !files.has(each)) ?? pathname;
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  return folder + path.slice(folder.length).slice(-MAX_NAME_LENGTH);
}

/** The path of a URL as imports may write it: with its escapes and without. */
const namesOf = (path: string): string[] => [...new Set([path, path.split('/').map(unescaped).join('/')])];

function unescaped(name: string): string {
  try {
    const text = decodeURIComponent(name);
    return /[/\\\0]/.test(text) ? name : text;
  } catch {
    return name;
  }
}

/** The bundler's map is the last thing in the code. */
function withoutSourceMap(code: string): string {
  const at = code.lastIndexOf('\n//# sourceMappingURL=');
  return at < 0 ? code : code.slice(0, at + 1);
}

interface RemoteFile {
  code: string;
  url: URL;
}

/** The code of the entry and of the neighbours that it and they import, by path. */
async function withNeighbours(entry: RemoteFile, imports: string[], fetches: Fetches): Promise<Map<string, string>> {
  const files = new Map([[entry.url.pathname, entry.code]]);
  const seen = new Set<string>();
  const waiting: URL[] = [];
  /** Different specifiers may denote one file: by `?`, `#` or `..`. */
  const expect = (specifiers: string[], from: URL): void => {
    if (specifiers.length > MAX_IMPORTS) throw new TooMuch(`has a file with more than ${MAX_IMPORTS} imports`);
    for (const specifier of specifiers) {
      const url = new URL(specifier, from);
      if (seen.has(url.pathname)) continue;
      seen.add(url.pathname);
      waiting.push(url);
    }
  };
  expect(imports, entry.url);
  // grows while it is read
  for (const url of waiting) {
    const found = await neighbour(url, files, fetches);
    if (!found) continue;
    // beside the entry
    if (files.size > MAX_FILES) throw new TooMuch(`imports more than ${MAX_FILES} files`);
    files.set(found.url.pathname, found.code);
    expect(relativeImports(found.code), found.url);
  }
  return files;
}

/** The requests for one component, which are limited in number, in time and in size. */
class Fetches {
  /** Why the first neighbour, if any, cannot be read that is or may be there. */
  missed: Unreadable | undefined;
  private readonly signal: AbortSignal;
  /** At least as long as all files may take. */
  private readonly callerWaits: boolean;
  private count = 0;
  private bytes = 0;

  constructor(
    private readonly fetcher: CodeFetcher,
    until: number,
  ) {
    const ms = msUntil(until);
    this.callerWaits = ms >= READ_MS;
    this.signal = AbortSignal.timeout(Math.min(READ_MS, ms));
  }

  /**
   * Throws Unreadable if the file cannot be fetched, TooMuch if the component needs too many requests, too much time or too much memory, TimedOut if the
   * caller stops waiting before that.
   */
  async fetch(text: string): Promise<RemoteFile> {
    if (++this.count > MAX_FETCHES) throw new TooMuch('imports too many files that do not exist');
    try {
      const file = await this.fetcher.fetch(text, this.signal);
      this.bytes += Buffer.byteLength(JSON.stringify(file.code)) * namesOf(file.url.pathname).length;
      if (this.bytes > MAX_FILES_BYTES) throw new TooMuch(`has more than ${MAX_FILES_BYTES / 1024 / 1024} MiB of code in all its files`);
      return file;
    } catch (error) {
      if (!this.signal.aborted) throw error;
      throw this.callerWaits
        ? new TooMuch(`could not be read within ${READ_MS / 1000} s`)
        : new TimedOut('component_url could not be read in time');
    }
  }
}

/** The component exceeds a limit. It ends the reading, unlike a single file that cannot be fetched. */
class TooMuch extends Invalid {
  constructor(why: string) {
    super(problem(why));
  }
}

/**
 * Undefined if it has been fetched already or cannot be fetched: the bundler reports whether it is really needed, with file and line. No other candidate
 * takes the place of one that is there but cannot be read.
 */
async function neighbour(wanted: URL, files: ReadonlyMap<string, string>, fetches: Fetches): Promise<RemoteFile | undefined> {
  for (const pathname of candidates(wanted.pathname)) {
    if (files.has(pathname)) return undefined;
    const url = Object.assign(new URL(wanted), { pathname });
    try {
      return { code: (await fetches.fetch(url.href)).code, url };
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      if (error instanceof Absent) continue;
      fetches.missed ??= new Unreadable(error.why, url.href);
      return undefined;
    }
  }
  return undefined;
}
