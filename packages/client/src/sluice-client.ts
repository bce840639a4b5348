import { SluiceError, UnreachableError } from './errors.js';
import { createClient } from './generated/client/index.js';
import { type EventSummary, Operations, type PageInfo } from './generated/index.js';
import { type EventsOptions, liveEvents } from './live-events.js';
import { retryingFetch, type RetryOptions } from './retrying-fetch.js';

export interface SluiceOptions extends RetryOptions {
  /** Where Sluice is, for instance `http://localhost:3000`; the version (`/v1`) may follow. */
  url: string;
  /** The API key, or a function that returns it. */
  key: string | (() => string | Promise<string>);
  /** Headers of every request. */
  headers?: Record<string, string>;
}

export interface PublishOptions {
  /** The stream; default: the default one. */
  eventName?: string;
  /** The emit id: an event that is published again with it is stored once, and delivered with the same `webhook-id`. Default: a random one. */
  id?: string;
}

const PAGE = 100;

/**
 * Throws if the path of a request has a parameter without a value, which would be sent as `{id}`, and the API would not find it; or one that makes it
 * another path, such as that of the whole list.
 */
async function requirePath(request: unknown): Promise<void> {
  const { method, url, path } = request as { method: string; url: string; path?: Record<string, unknown> | null };
  for (const [, name] of url.matchAll(/\{(\w+)\}/g)) {
    const value = path?.[name!];
    if (value === undefined || value === null) throw new TypeError(`${method} ${url} needs path.${name}`);
    // a list without items would be an empty part of the path
    if (typeof value !== 'string') throw new TypeError(`${method} ${url} needs path.${name}, a string`);
    if (['', '.', '..'].includes(value)) throw new TypeError(`${method} ${url} needs path.${name}, which cannot be '${value}'`);
  }
}

/** The key as the value of a header. Throws an error that does not show it, unlike that of `Headers`. */
function sendable(key: unknown): string {
  if (typeof key !== 'string') throw new TypeError(`the API key must be a string, not ${typeof key}`);
  const trimmed = key.trim();
  if (!/^[\x21-\x7e]+$/.test(trimmed)) throw new TypeError('the API key is malformed: it must consist of visible ASCII characters');
  return trimmed;
}

/** For callers without types. */
function requireEmitter(emitterId: unknown): void {
  if (typeof emitterId !== 'string') throw new TypeError('the id of a source or workflow is required');
}

const isWorkflow = (emitterId: string): boolean => emitterId.startsWith('p_');

const notSluice = (url: string): UnreachableError =>
  new UnreachableError(`${url} did not return a response of Sluice: the URL may be wrong`);

/**
 * A client of one account. It has a method for each operation of the REST API, named after its operation id, which returns the body of the response:
 *
 *     const { data } = await sluice.createSource({ body: { key: 'http-request' } });
 *
 * Each method throws SluiceError if the API returns an error, and UnreachableError if Sluice does not respond, or its response breaks off.
 */
export class SluiceClient extends Operations {
  /** Where Sluice is, without the version. */
  readonly url: string;

  static {
    // a caller without types may pass nothing, which the generated methods would read
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(Operations.prototype))) {
      if (name === 'constructor') continue;
      const operation = descriptor.value as (this: SluiceClient, options: object) => unknown;
      Object.defineProperty(this.prototype, name, {
        ...descriptor,
        value(this: SluiceClient, options: object | null | undefined) {
          return operation.call(this, options ?? {});
        },
      });
    }
  }

  constructor(options: SluiceOptions) {
    // also for callers without types, and for a variable of the environment that is not set
    const { url, key, headers, ...retrying } = options ?? ({} as SluiceOptions);
    if (!url || typeof url !== 'string') throw new TypeError('SluiceClient needs a url, such as http://localhost:3000');
    // no error shows it: it may contain a password
    const parsed = /^https?:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : null;
    if (!parsed) throw new TypeError('the url must begin with http:// or https://, such as http://localhost:3000');
    if (parsed.username !== '' || parsed.password !== '' || /[?#]/.test(url))
      throw new TypeError('the url cannot contain a user, a password, a query or a fragment');
    if (!key) throw new TypeError('SluiceClient needs a key: is SLUICE_API_KEY set?');
    const baseUrl = url.replace(/\/+$/, '').replace(/\/v1$/, '');
    const client = createClient({
      baseUrl,
      auth: async () => sendable(typeof key === 'function' ? await key() : key),
      headers,
      fetch: retryingFetch(retrying),
      // the generated one sends a bigint as text
      bodySerializer: (body) => JSON.stringify(body),
      throwOnError: true,
      requestValidator: requirePath,
      responseValidator: async (body) => {
        const { data } = (body ?? {}) as { data?: unknown };
        if (typeof data !== 'object' || data === null) throw notSluice(baseUrl);
      },
    });
    // a thrown text is a body that is not JSON
    client.interceptors.error.use((problem, response) => {
      if (problem instanceof SyntaxError) return notSluice(baseUrl);
      return response === undefined || problem instanceof Error
        ? problem
        : new SluiceError(
            response.status,
            typeof problem === 'object' && problem !== null ? problem : {},
            response.headers.get('retry-after') ?? undefined,
          );
    });
    super({ client });
    this.url = baseUrl;
  }

  /**
   * All items of a list, newest first, requested page by page:
   *
   *     for await (const source of sluice.each((query) => sluice.listSources({ query }))) …
   */
  async *each<T>(list: (query: { limit: number; after?: string }) => Promise<{ page_info: PageInfo; data: T[] }>): AsyncGenerator<T> {
    for (let after: string | undefined; ;) {
      const { page_info, data } = await list({ limit: PAGE, after });
      if (after !== undefined && page_info.end_cursor === after)
        throw new TypeError('the function of each() must pass its argument on, as the query of the list');
      yield* data;
      // a shorter page is not always the last one: the function may request another limit
      const isWhole = data.length < PAGE && data.length === page_info.total_count;
      if (page_info.end_cursor === null || data.length === 0 || isWhole) return;
      after = page_info.end_cursor;
    }
  }

  /**
   * The events of a source or workflow as they are emitted, across disconnections. See EventsOptions.
   *
   *     for await (const { id, event } of sluice.events(sourceId)) …
   */
  events(emitterId: string, options: EventsOptions = {}): AsyncGenerator<EventSummary> {
    requireEmitter(emitterId);
    const { eventName: event_name, expand = true } = options;
    const path = { id: emitterId };
    const isOfWorkflow = isWorkflow(emitterId);
    const connection = {
      connect: async (after: string, signal: AbortSignal) =>
        (await this.client.get({
          url: isOfWorkflow ? '/v1/workflows/{id}/sse' : '/v1/sources/{id}/sse',
          path,
          query: { event_name, expand: expand ? 'event' : undefined },
          headers: { 'Last-Event-ID': after },
          security: [{ scheme: 'bearer', type: 'http' }],
          parseAs: 'stream',
          responseStyle: 'data',
          throwOnError: true,
          signal,
        })) as unknown as ReadableStream<Uint8Array>,
      newest: async (signal: AbortSignal) => {
        const request = { path, query: { event_name, limit: 1 }, signal };
        const { data } = await (isOfWorkflow ? this.listWorkflowEvents(request) : this.listSourceEvents(request));
        return data[0]?.id ?? '0-0';
      },
    };
    return liveEvents(connection, options);
  }

  /**
   * Publishes one event in the name of a source or workflow. Resolves with its emit id when Kafka has acknowledged it.
   *
   * @param event any JSON value
   */
  async publish(emitterId: string, event: unknown, options: PublishOptions = {}): Promise<string> {
    requireEmitter(emitterId);
    const { eventName } = options;
    // an empty id counts as absent
    const id = options.id || crypto.randomUUID();
    const request = { path: { id: emitterId }, query: { event_name: eventName, id }, body: event };
    const { data } = await (isWorkflow(emitterId) ? this.publishWorkflowEvents(request) : this.publishSourceEvents(request));
    return data[0]?.emit_id ?? id;
  }
}
