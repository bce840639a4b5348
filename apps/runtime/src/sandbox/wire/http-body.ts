import { isUtf8 } from 'node:buffer';
import { parse as parseQuery } from 'node:querystring';
import { depthOf } from './json-text.js';
import { multipartFields } from './multipart.js';

/** The body of an HTTP request, as its event contains it. */
export interface HttpBody {
  /** As text; if it is not UTF-8, in base64 with `bodyBase64: true` */
  bodyRaw: string;
  bodyBase64?: true;
  /** Parsed, if it is JSON (nested no deeper than an event may be), urlencoded or multipart; otherwise `bodyRaw` */
  body: unknown;
}

/** The deepest JSON that the event of a request contains parsed. The event is one level above it */
const deepestBody = 199;

/** Both ends use this: the runtime for small bodies, and the guest for large ones. */
export function readHttpBody(contentType: string, bytes: Buffer): HttpBody {
  const raw = rawHttpBody(bytes);
  return { ...raw, body: parseBody(contentType, bytes, raw) };
}

export const rawHttpBody = (bytes: Buffer): Omit<HttpBody, 'body'> =>
  isUtf8(bytes) ? { bodyRaw: bytes.toString('utf8') } : { bodyRaw: bytes.toString('base64'), bodyBase64: true };

function parseBody(contentType: string, bytes: Buffer, { bodyRaw: text, bodyBase64 }: Omit<HttpBody, 'body'>): unknown {
  const type = contentType.toLowerCase().split(';', 1)[0]!.trim();
  if (bytes.length === 0) return '';
  if (type === 'multipart/form-data') return multipartFields(contentType, bytes) ?? text;
  if (bodyBase64) return text;
  if (/^[\w.+-]+\/(?:[\w.+-]+\+)?json$/.test(type)) return parseJson(text);
  if (type === 'application/x-www-form-urlencoded') return parseFields(text);
  return text;
}

/** The component sees a malformed body as text. */
function parseJson(text: string): unknown {
  if (depthOf(text) > deepestBody) return text;
  try {
    // without its byte order mark (RFC 8259, 8.1)
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;
  } catch {
    return text;
  }
}

/** All fields, because the sizes of URLs and bodies are limited already. By default, Node's parser drops those after the first thousand. */
export const parseFields = (text: string): Record<string, string | string[]> => ({
  ...(parseQuery(text, '&', '=', { maxKeys: 0 }) as Record<string, string | string[]>),
});
