/** The delivery is not authentic: its signature, its headers or its age are wrong. */
export class WebhookVerificationError extends Error {
  override name = 'WebhookVerificationError';
}

export interface VerifyOptions {
  /** How old, or how far in the future, a delivery may be; default: 300 seconds. */
  toleranceSeconds?: number;
  /** The time to compare with, in ms since the epoch; default: now. */
  now?: number;
}

const PREFIX = 'whsec_';

type Headers = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * Verifies a delivery as Standard Webhooks defines it, and returns its event.
 *
 * @param secret `whsec_…`; several while the secret is being rotated
 * @param headers of the request, by lower-case name
 * @param body of the request, exactly as it arrived
 * @returns the body, parsed as JSON
 * @throws WebhookVerificationError if the delivery is not authentic, TypeError if an argument is wrong
 */
export async function verifyWebhook(
  secret: string | string[],
  headers: Headers,
  body: string | Uint8Array,
  { toleranceSeconds = 300, now = Date.now() }: VerifyOptions = {},
): Promise<unknown> {
  // also for callers without types
  const keys = await Promise.all((Array.isArray(secret) && secret.length > 0 ? secret : [secret]).map(keyOf));
  if (typeof headers !== 'object' || headers === null) throw new TypeError('the headers of the request are required');
  if (typeof body !== 'string' && !ArrayBuffer.isView(body))
    throw new TypeError('the body must be the text or the bytes of the request, exactly as they arrived: not a parsed object');
  for (const [name, value] of Object.entries({ toleranceSeconds, now }))
    if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${name} must be a number`);

  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headerOf(headers, name));
  if (!id || !timestamp || !signatures)
    throw new WebhookVerificationError('the headers webhook-id, webhook-timestamp and webhook-signature are required');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp must be Unix seconds');
  const age = now / 1000 - Number(timestamp);
  if (Math.abs(age) > toleranceSeconds)
    throw new WebhookVerificationError(`the delivery was signed ${Math.abs(Math.round(age))} s ${age > 0 ? 'ago' : 'in the future'}`);

  // the bytes as they arrived: decoding them would remove a byte order mark, which the sender has signed
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  // a server joins the lines of several headers by commas
  const given = [...signatures.matchAll(/(?<=^|[\s,])v1,([^\s,]+)/g)].map(([, signature = '']) => bytesOf(signature));
  for (const key of keys) {
    // once for each secret: anyone can send a request that lists thousands of signatures
    const expected = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed));
    if (given.some((signature) => signature && isEqual(signature, expected))) return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
  }
  throw new WebhookVerificationError('no signature matches');
}

/** Compares in constant time. Web Crypto has no function for it. */
function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  return a.reduce((difference, byte, n) => difference | (byte ^ b[n]!), 0) === 0;
}

function headerOf(headers: Headers, name: string): string | undefined {
  const value = typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, string | string[] | undefined>)[name];
  return Array.isArray(value) ? value.join(' ') : (value ?? undefined);
}

async function keyOf(secret: unknown) {
  const bytes = typeof secret === 'string' && secret.startsWith(PREFIX) ? bytesOf(secret.slice(PREFIX.length)) : null;
  if (!bytes || bytes.length === 0) throw new TypeError('the secret must be whsec_ followed by base64; is its environment variable set?');
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
