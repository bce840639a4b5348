import type { IncomingHttpHeaders } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';

/** The event that an HTTP request passes to `run`. */
export interface HttpEvent {
  method: string;
  /** The path below the endpoint, with its leading slash. */
  path: string;
  query: Record<string, string | string[]>;
  headers: Record<string, string>;
  /** The body as text; if it is not UTF-8, in base64 with `bodyBase64: true`. */
  bodyRaw: string;
  bodyBase64?: true;
  /** The parsed body if it is JSON (nested no deeper than an event may be), urlencoded or multipart; otherwise the text. */
  body: unknown;
}

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

export async function httpEvent(request: {
  method: string;
  path: string;
  search: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}): Promise<HttpEvent> {
  const headers: Record<string, string> = {};
  const named = namedByConnection(request.headers.connection);
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name)) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const text = request.body.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(request.body);
  return {
    method: request.method,
    path: request.path,
    query: { ...(parseQuery(request.search) as Record<string, string | string[]>) },
    headers,
    bodyRaw: isText ? text : request.body.toString('base64'),
    ...(isText ? {} : { bodyBase64: true as const }),
    body: await parseBody(request.headers['content-type'] ?? '', request.body, isText ? text : request.body.toString('base64')),
  };
}

async function parseBody(contentType: string, body: Buffer, text: string): Promise<unknown> {
  const [type = ''] = contentType.toLowerCase().split(';', 1);
  if (body.length === 0) return undefined;
  if (/^application\/(?:[\w.-]+\+)?json\s*$/.test(type)) {
    try {
      const value: unknown = JSON.parse(text);
      if (!nestsTooDeeply(value, MAX_JSON_DEPTH - 1)) return value;
    } catch {
      // the component sees the malformed body as text
    }
    return text;
  }
  if (type.trim() === 'application/x-www-form-urlencoded') return { ...parseQuery(text) };
  if (type.trim() === 'multipart/form-data') return (await multipartFields(contentType, body)) ?? text;
  return text;
}

/** Node's own parser, the one behind `Response.formData`. Files appear as `{filename, type, size}`. */
async function multipartFields(contentType: string, body: Buffer): Promise<Record<string, unknown> | undefined> {
  try {
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
    // entries of the same name are appended: copying them would take the square of their number
    const fields = new Map<string, unknown[]>();
    for (const [name, value] of form) {
      const field = typeof value === 'string' ? value : { filename: value.name, type: value.type, size: value.size };
      const known = fields.get(name);
      if (known) known.push(field);
      else fields.set(name, [field]);
    }
    return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
  } catch {
    return undefined;
  }
}
