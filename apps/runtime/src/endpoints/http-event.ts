import type { IncomingHttpHeaders } from 'node:http';
import { stringify } from 'node:querystring';
import type { DueRun } from '../run-events/run-events.js';
import { type HttpBody, parseFields, readHttpBody } from '../sandbox/wire/http-body.js';

export interface HttpRequest {
  method: string;
  /** The path below the endpoint, with its leading slash. */
  path: string;
  search: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** The event that an HTTP request passes to `run`. */
export type HttpEvent = HttpHead & HttpBody;

interface HttpHead {
  method: string;
  path: string;
  query: Record<string, string | string[]>;
  /** As it was sent, if `querystring.stringify(query)` is another text: some signatures are over it. */
  rawQuery?: string;
  headers: Record<string, string>;
}

/** A larger body is parsed in the process of its account, because parsing 512 KiB can take 0.1 s. */
const LARGE_BODY_BYTES = 32 * 1024;

/** Headers that are for one hop only, or that we set. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The headers that `connection` names, in lower case. Like `connection`, they are for one hop only. */
export const namedByConnection = (connection: string | string[] = ''): ReadonlySet<string> =>
  new Set(
    String(connection)
      .toLowerCase()
      .split(/[\s,]+/),
  );

/** The event of a run for a request, as JSON text, and its body if it is large. */
export function httpRun(request: HttpRequest): Pick<DueRun, 'event' | 'http_body'> {
  if (request.body.length <= LARGE_BODY_BYTES) return { event: JSON.stringify(httpEvent(request)) };
  return { event: JSON.stringify(httpHead(request)), http_body: request.body.toString('base64') };
}

export function httpEvent(request: HttpRequest): HttpEvent {
  const head = httpHead(request);
  return { ...head, ...readHttpBody(head.headers['content-type'] ?? '', request.body) };
}

function httpHead({ method, path, search, headers: received }: HttpRequest): HttpHead {
  const headers: Record<string, string> = {};
  const named = namedByConnection(received.connection);
  for (const [name, value] of Object.entries(received)) {
    if (value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name)) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const query = parseFields(search);
  return { method, path, query, ...(stringify(query) !== search && { rawQuery: search }), headers };
}
