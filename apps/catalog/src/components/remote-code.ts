import { isUtf8 } from 'node:buffer';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type Agent, request } from 'undici';
import { bundleComponent, Invalid, isInvalid, TimedOut, type UserId } from '#contracts';
import { AddressGuard, EgressRefused, guardedAgent, MAX_INFORMATIONAL } from '#egress';
import { Messages } from '#messaging';
import { candidates, relativeImports } from '#relative-imports';
import { LimitPerKey } from '#limits';
import { CatalogConfig } from '../catalog.config.js';

/** Of a URL from which code is fetched, also after redirects, or which is stored beside code. */
export const MAX_URL_LENGTH = 2048;
const TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 5;
const HEADER_BYTES = 64 * 1024;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** The page of a file on GitHub is HTML; its code is in the raw file. */
export function rawUrl(url: URL): URL {
  const [, owner, repository, kind, ...rest] = url.pathname.split('/');
  if (url.hostname !== 'github.com' || kind !== 'blob' || rest.length < 2) return url;
  return new URL(`https://raw.githubusercontent.com/${owner}/${repository}/${rest.join('/')}`);
}

/** Code that cannot be read, although it is or may be there: it is too large, for example, or its server is busy. */
export class Unreadable extends Invalid {
  /** @param file that the code at the URL imports; '': the code at the URL itself */
  constructor(
    readonly why: string,
    file = '',
  ) {
    super(problem(file === '' ? why : `imports ${file}, which ${why}`));
  }
}

/** Nothing is there. */
export class Absent extends Unreadable {}

const isBusy = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status);
const problem = (why: string) => [{ field: 'component_url', message: `component_url ${why}` }];

/** Reads component code from public addresses. Size, time and redirects are limited, and each redirect is checked again. */
@Injectable()
export class CodeFetcher implements OnApplicationShutdown {
  private readonly agent: Agent;

  constructor(private readonly config: CatalogConfig) {
    this.agent = guardedAgent(AddressGuard.fromConfig(config.allowPrivateHosts), {
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      // in chunks, which add to the size of the code
      maxResponseBytes: 2 * config.maxCodeBytes + HEADER_BYTES,
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.agent.close();
  }

  /**
   * The code at a URL, and its URL after redirects. Throws Unreadable with the reason if it cannot be fetched; Absent if there is none.
   * @param ending ends the request
   */
  async fetch(text: string, ending?: AbortSignal): Promise<{ code: string; url: URL }> {
    const refuse = (why: string) => new Unreadable(why);
    if (!URL.canParse(text)) throw refuse('must be an http or https URL');
    let url = rawUrl(new URL(text));
    const rude = new AbortController();
    const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), rude.signal, ...(ending ? [ending] : [])]);
    let informational = 0;
    const onInfo = (): void => {
      if (++informational > MAX_INFORMATIONAL) rude.abort(refuse('cannot be read: its server sends too many informational responses'));
    };
    try {
      for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
        if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refuse('must be an http or https URL');
        if (url.href.length > MAX_URL_LENGTH) {
          const limit = `more than ${MAX_URL_LENGTH} characters`;
          throw refuse(redirects === 0 ? `has ${limit}` : `redirects to a URL of ${limit}`);
        }
        const { statusCode, headers, body } = await request(url, { dispatcher: this.agent, signal, onInfo });
        if (REDIRECTS.has(statusCode) && typeof headers.location === 'string' && URL.canParse(headers.location, url.href)) {
          await body.dump();
          url = rawUrl(new URL(headers.location, url));
          continue;
        }
        if (statusCode !== 200) {
          await body.dump();
          const why = `returned status ${statusCode}`;
          throw isBusy(statusCode) ? refuse(why) : new Absent(why);
        }
        const chunks: Buffer[] = [];
        let size = 0;
        for await (const chunk of body as AsyncIterable<Buffer>) {
          size += chunk.length;
          if (size > this.config.maxCodeBytes) throw refuse(`has more than ${this.config.maxCodeBytes} bytes`);
          chunks.push(chunk);
        }
        const bytes = Buffer.concat(chunks);
        if (!isUtf8(bytes)) throw refuse('is not UTF-8');
        if (bytes.includes(0)) throw refuse('has a NUL character');
        return { code: bytes.toString('utf8'), url };
      }
      throw refuse(`redirects more than ${MAX_REDIRECTS} times`);
    } catch (error) {
      if (error instanceof Invalid) throw error;
      if (error instanceof EgressRefused) throw refuse(`cannot be read: ${error.message}`);
      const { code, name } = error as { code?: unknown; name: string };
      // The code of a DOMException is a number
      const reason = typeof code === 'string' ? code : name;
      throw refuse(/timeout/i.test(reason) ? `could not be read within ${TIMEOUT_MS / 1000} s` : `cannot be read (${reason})`);
    }
  }
}

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
