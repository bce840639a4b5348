import { namedByConnection } from './http-event.js';

/** Headers that a component must not set: those of the connection, and those that would disable the sandboxed origin. */
const OURS = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'content-length',
  'content-security-policy',
  'x-content-type-options',
];
/** Headers that affect the whole host, or all pages of the origin, and not only this response. */
const OF_THE_HOST = [
  'accept-ch',
  'accept-ch-lifetime',
  'activate-storage-access',
  'alt-svc',
  'clear-site-data',
  'content-security-policy-report-only',
  'critical-ch',
  'expect-ct',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'public-key-pins-report-only',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie2',
  'set-login',
  'strict-transport-security',
  'use-as-dictionary',
];
/** Headers that make a proxy in front of us, such as nginx, serve another file or change its caching. */
const OF_A_PROXY = /^(x-accel-|x-sendfile|x-lighttpd-|x-litespeed-|x-reproxy-|surrogate-|.*cdn-cache-control)/;

const DROPPED = new Set([...OURS, ...OF_THE_HOST]);
/** The most headers that we send, far below the limits of proxies. */
const MOST = 100;

/** The headers of a component's response that may reach the client. ownHost: the source has its own host name, and may set cookies for it. */
export function replyHeaders(headers: Record<string, string | string[]>, { ownHost }: { ownHost: boolean }): [string, string | string[]][] {
  const named = namedByConnection(headers.connection);
  return Object.entries(headers)
    .flatMap(([name, value]): [string, string | string[]][] => {
      const lower = name.toLowerCase();
      if (DROPPED.has(lower) || named.has(lower) || OF_A_PROXY.test(lower)) return [];
      if (lower !== 'set-cookie') return [[name, value]];
      const own = ownHost ? [value].flat().filter((cookie) => !hasDomain(cookie)) : [];
      return own.length > 0 ? [[name, own]] : [];
    })
    .slice(0, MOST);
}

/** A cookie of a parent domain would be sent to other sources, too. */
const hasDomain = (cookie: string): boolean => cookie.split(';').some((part, index) => index > 0 && /^\s*domain\s*(=|$)/i.test(part));
