import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type Agent, request } from 'undici';
import { Invalid } from '#contracts';
import { AddressGuard, EgressRefused, guardedAgent } from '#egress';
import { CatalogConfig } from '../catalog.config.js';

const TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** The page of a file on GitHub is HTML; its code is in the raw file. */
export function rawUrl(url: URL): URL {
  const [, owner, repository, kind, ...rest] = url.pathname.split('/');
  if (url.hostname !== 'github.com' || kind !== 'blob' || rest.length < 2) return url;
  return new URL(`https://raw.githubusercontent.com/${owner}/${repository}/${rest.join('/')}`);
}

/** Reads component code from public addresses. Size, time and redirects are limited, and each redirect is checked again. */
@Injectable()
export class CodeFetcher implements OnApplicationShutdown {
  private readonly agent: Agent;

  constructor(private readonly config: CatalogConfig) {
    this.agent = guardedAgent(AddressGuard.fromConfig(config.allowPrivateHosts), { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.agent.close();
  }

  /** The code at a URL, and its URL after redirects. Throws Invalid with the reason if it cannot be fetched. */
  async fetch(text: string): Promise<{ code: string; url: URL }> {
    const refuse = (why: string) => new Invalid([{ field: 'component_url', message: `component_url ${why}` }]);
    if (!URL.canParse(text)) throw refuse('must be an http or https URL');
    let url = rawUrl(new URL(text));
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
        if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refuse('must be an http or https URL');
        const { statusCode, headers, body } = await request(url, { dispatcher: this.agent, signal });
        if (REDIRECTS.has(statusCode) && typeof headers.location === 'string' && URL.canParse(headers.location, url.href)) {
          await body.dump();
          url = rawUrl(new URL(headers.location, url));
          continue;
        }
        if (statusCode !== 200) {
          await body.dump();
          throw refuse(`returned status ${statusCode}`);
        }
        const chunks: Buffer[] = [];
        let size = 0;
        for await (const chunk of body as AsyncIterable<Buffer>) {
          size += chunk.length;
          if (size > this.config.maxCodeBytes) throw refuse(`has more than ${this.config.maxCodeBytes} bytes`);
          chunks.push(chunk);
        }
        return { code: Buffer.concat(chunks).toString('utf8'), url };
      }
      throw refuse(`redirects more than ${MAX_REDIRECTS} times`);
    } catch (error) {
      if (error instanceof Invalid) throw error;
      if (error instanceof EgressRefused) throw refuse(`cannot be read: ${error.message}`);
      const reason = (error as { code?: string; name: string }).code ?? (error as Error).name;
      throw refuse(`cannot be read (${reason})`);
    }
  }
}
