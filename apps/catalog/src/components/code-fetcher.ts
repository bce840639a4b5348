import { isUtf8 } from 'node:buffer';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type Agent, request } from 'undici';
import { Invalid } from '#contracts';
import { AddressGuard, EgressRefused, guardedAgent, MAX_INFORMATIONAL } from '#egress';
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
export const problem = (why: string) => [{ field: 'component_url', message: `component_url ${why}` }];

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
