import { describe, expect, it } from '@jest/globals';
import { replyHeaders } from './reply-headers.js';

const shared = { ownHost: false };
const own = { ownHost: true };

describe("the headers of a component's response", () => {
  it.each([
    'Set-Cookie',
    'set-cookie2',
    'Strict-Transport-Security',
    'clear-site-data',
    'alt-svc',
    'Report-To',
    'reporting-endpoints',
    'NEL',
    'service-worker-allowed',
    'Refresh',
    'accept-ch',
    'critical-ch',
    'origin-agent-cluster',
    'content-security-policy',
    'Content-Security-Policy-Report-Only',
    'public-key-pins',
    'use-as-dictionary',
    'connection',
    'transfer-encoding',
    'proxy-authenticate',
    'X-Accel-Redirect',
    'x-sendfile',
    'surrogate-control',
    'cdn-cache-control',
  ])('do not contain %s on the shared host', (name) => {
    expect(replyHeaders({ [name]: 'x=1', 'x-other': '2' }, shared)).toEqual([['x-other', '2']]);
  });

  it.each(['content-type', 'location', 'Cache-Control', 'ETag', 'access-control-allow-origin', 'www-authenticate', 'x-anything'])(
    'contain %s',
    (name) => {
      expect(replyHeaders({ [name]: 'x' }, shared)).toEqual([[name, 'x']]);
    },
  );

  it('do not contain the headers that their Connection header names', () => {
    expect(replyHeaders({ connection: 'close, x-hop', 'x-hop': '1' }, shared)).toEqual([]);
  });

  it("may set cookies on the source's own host, but not for a parent domain", () => {
    const cookies = ['a=1; Path=/', 'b=2; Domain=example.com', 'c=3; domain = .example.com', 'domain=4; HttpOnly'];
    expect(replyHeaders({ 'set-cookie': cookies }, own)).toEqual([['set-cookie', ['a=1; Path=/', 'domain=4; HttpOnly']]]);
    expect(replyHeaders({ 'set-cookie': 'b=2;Domain=example.com' }, own)).toEqual([]);
    expect(replyHeaders({ 'strict-transport-security': 'max-age=1; includeSubDomains' }, own)).toEqual([]);
  });

  it('are at most a hundred', () => {
    expect(replyHeaders(Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`x-${n}`, ''])), shared)).toHaveLength(100);
  });
});
