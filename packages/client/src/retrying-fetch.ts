import { UnreachableError } from './errors.js';
import { sleep } from './sleep.js';

export interface RetryOptions {
  /** How often a request is repeated; default: 3. */
  retries?: number;
  /** The time limit of one attempt in ms, including the body of the response, but not that of a live stream; default: 60 000; Infinity: none. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
const PROBLEM = 'application/problem+json';
const STREAM = 'text/event-stream';
/** A longer timer would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const PASSING = [429, 502, 503, 504];

/**
 * A fetch that repeats requests. It repeats a request that got no complete response, or one that says that the failure is temporary, after a delay
 * that doubles each time, or the one that the response asks for. Each POST gets an `Idempotency-Key`, so that its repetition has no second effect.
 * If a repeated DELETE finds nothing, an attempt without a response may have deleted it: it has succeeded. A DELETE of events that has no end is not
 * repeated if it may have taken effect.
 * Throws UnreachableError if Sluice does not respond, if its response breaks off, or if something else responds. It does not wait for the body of a live
 * stream.
 *
 * @throws TypeError at once if a number is not one
 */
export function retryingFetch({ retries = 3, timeoutMs = 60_000, fetch = globalThis.fetch }: RetryOptions = {}): typeof globalThis.fetch {
  // NaN is greater than nothing: requests would be repeated without end
  if (!(typeof retries === 'number' && retries >= 0)) throw new TypeError(`retries must be a number from 0, not ${retries}`);
  if (!(typeof timeoutMs === 'number' && timeoutMs > 0)) throw new TypeError(`timeoutMs must be a number above 0, not ${timeoutMs}`);
  return async (input, init) => {
    const request = new Request(input, init);
    if (request.method === 'POST' && !isRepeatable(request) && !request.headers.has('idempotency-key'))
      request.headers.set('idempotency-key', crypto.randomUUID());
    let mayHaveTakenEffect = false;
    for (let attempt = 0; ; attempt++) {
      const result = await once(fetch, request.clone(), timeoutMs);
      const isMaybeDone = result instanceof Error || result.status !== 429;
      const isLast = attempt >= retries || request.signal.aborted || (isMaybeDone && deletesAllUntilNow(request));
      const delay = isLast ? null : delayBefore(attempt, result);
      if (delay === null) {
        if (result instanceof Error) throw result;
        requireNoRedirect(request, result);
        requireSluice(request, result);
        const success = mayHaveTakenEffect ? deleted(request, result) : null;
        if (success) await result.body?.cancel();
        return success ?? result;
      }
      mayHaveTakenEffect ||= isMaybeDone;
      if (!(result instanceof Error)) await result.body?.cancel();
      await sleep(delay, request.signal);
      request.signal.throwIfAborted();
    }
  };
}

async function once(fetch: typeof globalThis.fetch, request: Request, timeoutMs: number): Promise<Response | Error> {
  const limit = new AbortController();
  const stop = (): void => limit.abort(new Error(`no complete response within ${timeoutMs / 1000} s`));
  const timer = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(stop, timeoutMs);
  try {
    // a redirected POST would become a GET, and a request to another server would lose its key
    return await complete(await fetch(request, { redirect: 'manual', signal: AbortSignal.any([request.signal, limit.signal]) }));
  } catch (error) {
    request.signal.throwIfAborted();
    return new UnreachableError(`${new URL(request.url).origin} cannot be reached: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Throws if the request has to be sent to another address: nothing was changed there. */
function requireNoRedirect({ url }: Request, { type, status, headers }: Response): void {
  const location = headers.get('location');
  if (type !== 'opaqueredirect' && (status < 300 || status >= 400 || location === null)) return;
  const target = location === null ? 'another address' : new URL(location, url).origin;
  throw new UnreachableError(`${new URL(url).origin} redirects to ${target}, and nothing was done: use the address of Sluice itself`);
}

/** The response with its whole body, so that a connection that breaks or stalls in the middle of it is noticed while the request can be repeated. */
async function complete(response: Response): Promise<Response> {
  const { body, status, statusText, headers } = response;
  if (body === null || headers.get('content-type')?.startsWith(STREAM)) return response;
  return new Response(await response.arrayBuffer(), { status, statusText, headers });
}

/** The delay in ms before the next attempt; null: there should be none. */
function delayBefore(attempt: number, result: Response | Error): number | null {
  const backOff = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
  if (result instanceof Error) return backOff;
  const wanted = retryAfter(result.headers.get('retry-after') ?? '');
  // a 409 that says when to retry: the first request with this Idempotency-Key is still in progress
  if (!PASSING.includes(result.status) && !(result.status === 409 && wanted > 0)) return null;
  if (!Number.isFinite(wanted)) return backOff;
  return wanted > MAX_DELAY_MS ? null : Math.max(wanted, backOff);
}

/** The delay that the header asks for, in ms: it contains seconds or a date. NaN if it asks for none. */
const retryAfter = (text: string): number => (/^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now());

/**
 * Throws if something else than Sluice responded, such as a proxy that does not reach it: its status says nothing about a resource or the key, and a success is
 * a page for people.
 */
function requireSluice({ url }: Request, { status, ok, body, headers }: Response): void {
  const { origin, pathname } = new URL(url);
  const type = headers.get('content-type') ?? '';
  const isExpected = pathname.endsWith('/sse') ? type.startsWith(STREAM) : body === null || type.includes('json');
  if (ok ? !isExpected : !type.startsWith(PROBLEM))
    throw new UnreachableError(
      `${origin} returned ${status}, but not a response of Sluice: a proxy may have responded, or the URL may be wrong`,
    );
}

/**
 * The response to a DELETE of something that is deleted already; null if something else was refused, or if the request deletes nothing that it names, such as
 * a replay that it cancels.
 */
function deleted({ method, url }: Request, { status }: Response): Response | null {
  const { pathname } = new URL(url);
  // the key that the request uses may be the one that it has deleted
  const isKeyGone = status === 401 && /\/keys\/[^/]+$/.test(pathname);
  if (method !== 'DELETE' || (status !== 404 && !isKeyGone)) return null;
  if (/\/(sources|webhooks|connections|keys)\/[^/]+$/.test(pathname)) return new Response(null, { status: 204 });
  // these return what they have deleted
  return /\/(auto_)?subscriptions$/.test(pathname) ? Response.json({ data: [] }) : null;
}

/** Whether the request deletes the events until the time when it arrives: a repetition would also delete those that were emitted since then. */
function deletesAllUntilNow({ method, url }: Request): boolean {
  const { pathname, searchParams } = new URL(url);
  // an empty end counts as absent
  return method === 'DELETE' && pathname.endsWith('/events') && !searchParams.get('end_id');
}

/** Events with the same emit id are stored once, and receivers know them by their `webhook-id`; an Idempotency-Key would cost as much as the rest of the request. */
function isRepeatable({ url, headers }: Request): boolean {
  const { pathname, searchParams } = new URL(url);
  if (!pathname.endsWith('/events')) return false;
  // an empty id counts as absent
  return (
    Boolean(searchParams.get('id')) || headers.has('ce-id') || (headers.get('content-type') ?? '').startsWith('application/cloudevents')
  );
}

/** Why a fetch failed: Node wraps the reason, and a host with several addresses has several reasons. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: Error & { code?: string; errors?: Error[] } };
  // the message of OpenSSL consists of its internals
  if (cause?.code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'it does not speak TLS; is http:// meant?';
  return cause?.errors?.[0]?.message ?? (cause?.message || cause?.code) ?? message;
}
