import { describe, expect, it } from '@jest/globals';
import { HttpResponse } from './http-response.js';

/** Feeds the response in parts of this many bytes. */
function read(wire: string | Buffer, partBytes = Infinity): HttpResponse {
  const bytes = Buffer.from(wire);
  const response = new HttpResponse();
  for (let at = 0; at < bytes.length && !response.isComplete; at += partBytes) response.take(bytes.subarray(at, at + partBytes));
  return response;
}

const HEAD = 'HTTP/1.1 200 OK\r\n';

it.each<[string, string, Partial<HttpResponse>]>([
  ['a length', `${HEAD}content-length: 2\r\n\r\nok`, { body: 'ok', isComplete: true, keepsConnection: true }],
  ['no body', `${HEAD}content-length: 0\r\n\r\n`, { body: '', isComplete: true, keepsConnection: true }],
  ['the status 204', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', isComplete: true, keepsConnection: true }],
  ['the status 304 and a length', 'HTTP/1.1 304 \r\ncontent-length: 9\r\n\r\n', { status: 304, isComplete: true, keepsConnection: true }],
  ['a status without a reason', 'HTTP/1.1 503\r\ncontent-length: 0\r\n\r\n', { status: 503, isComplete: true }],
  [
    'chunks',
    `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n`,
    { body: 'abc', isComplete: true, keepsConnection: true },
  ],
  [
    'chunks and trailers',
    `${HEAD}Transfer-Encoding: Chunked\r\n\r\n0A \r\n0123456789\r\n00\r\nx: y\r\n\r\n`,
    { body: '0123456789', isComplete: true, keepsConnection: true },
  ],
  [
    'chunks of a list of codings',
    `${HEAD}transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
    { isComplete: true, keepsConnection: true },
  ],
  [
    'chunks and a length',
    `${HEAD}transfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n1\r\na\r\n0\r\n\r\n`,
    { body: 'a', isComplete: true, keepsConnection: false },
  ],
  ['an unknown coding', `${HEAD}transfer-encoding: gzip\r\n\r\nabc`, { body: 'abc', isComplete: false, keepsConnection: false }],
  ['neither length nor chunks', `${HEAD}\r\nabc`, { body: 'abc', isComplete: false, keepsConnection: false }],
  ['a part of the body', `${HEAD}content-length: 9\r\n\r\nabc`, { status: 200, body: 'abc', isComplete: false }],
  ['Connection: close', `${HEAD}content-length: 0\r\nConnection: foo, Close\r\n\r\n`, { isComplete: true, keepsConnection: false }],
  [
    'line breaks before it',
    `\r\n\n${HEAD}content-length: 1\r\n\r\na`,
    { body: 'a', isComplete: true, keepsConnection: true, hasBegun: true },
  ],
  ['line breaks alone', '\r\n', { status: undefined, hasBegun: false }],
  ['the status 204 and chunks', 'HTTP/1.1 204 No\r\ntransfer-encoding: chunked\r\n\r\n', { isComplete: true, keepsConnection: false }],
  ['the status 204 and a length', 'HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n', { isComplete: true, keepsConnection: false }],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n', { isComplete: true, keepsConnection: false }],
  ['lines that end with LF', 'HTTP/1.1 200 OK\ncontent-length: 2\nretry-after: 3\n\nok', { body: 'ok', retryAfter: '3', isComplete: true }],
  ['folded lines', `${HEAD}x: a\r\n b\r\ncontent-length:\r\n\t1\r\n\r\na`, { body: 'a', isComplete: true }],
  [
    'the same length twice',
    `${HEAD}content-length: 1\r\ncontent-length: 1\r\n\r\na`,
    { body: 'a', isComplete: true, keepsConnection: true },
  ],
  [
    'Retry-After',
    'HTTP/1.1 429 No\r\nRETRY-AFTER:  Sat, 28 Nov 2026 21:00:00 GMT \r\ncontent-length: 0\r\n\r\n',
    { status: 429, retryAfter: 'Sat, 28 Nov 2026 21:00:00 GMT' },
  ],
  ['Keep-Alive', `${HEAD}keep-alive: max=3, timeout=7\r\ncontent-length: 0\r\n\r\n`, { keepAliveMs: 7000, keepsConnection: true }],
  [
    'informational responses',
    `HTTP/1.1 103 Early Hints\r\nretry-after: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${HEAD}content-length: 1\r\n\r\na`,
    { status: 200, retryAfter: undefined, body: 'a', isComplete: true, keepsConnection: true },
  ],
  ['a character of several bytes', `${HEAD}content-length: 4\r\n\r\n\u{1F600}`, { body: '\u{1F600}', isComplete: true }],
  [
    'a chunk without a valid size',
    `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    { status: 200, isComplete: true, keepsConnection: false },
  ],
  [
    'a chunk that is longer than its size',
    `${HEAD}transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n`,
    { body: 'a', isComplete: true, keepsConnection: false },
  ],
])('a response with %s is the same in any parts', (_, wire, expected) => {
  for (const partBytes of [Infinity, 1, 2, 3, 7, 50]) expect(read(wire, partBytes)).toMatchObject(expected);
});

it.each([
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 'the response is not valid HTTP'],
  ['HTTP/2', 'HTTP/2 200\r\n\r\n', 'the response is not valid HTTP'],
  ['a status below 100', 'HTTP/1.1 099 No\r\n\r\n', 'the response is not valid HTTP'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n', 'the response is not valid HTTP'],
  ['a header without a colon', `${HEAD}x\r\n\r\n`, 'the response is not valid HTTP'],
  ['a header without a name', `${HEAD}: x\r\n\r\n`, 'the response is not valid HTTP'],
  ['a length with a letter', `${HEAD}content-length: 1x\r\n\r\na`, 'the response is not valid HTTP'],
  ['two lengths', `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab`, 'the response is not valid HTTP'],
  ['101', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'the receiver returned 101 Switching Protocols, which was not requested'],
  ['101 informational responses', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(101), 'too many informational responses'],
  ['headers of more than 16 KiB', `${HEAD}x: ${'x'.repeat(20_000)}`, 'the response has too many headers'],
])('%s cannot be read', (_, wire, message) => {
  for (const partBytes of [Infinity, 1, 100])
    expect(() => read(wire, partBytes)).toThrow(expect.objectContaining({ name: 'BadResponse', message }));
});

describe('the connection is not used again', () => {
  it.each([
    ['a length', `${HEAD}content-length: 1\r\n\r\na`],
    ['chunks', `${HEAD}transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ])('after a response with %s that more bytes follow', (_, wire) => {
    expect(read(wire)).toMatchObject({ isComplete: true, keepsConnection: true });
    expect(read(`${wire}HTTP/1.1 200 OK\r\n`)).toMatchObject({ isComplete: true, keepsConnection: false });
  });

  it.each([
    ['a body of more than 64 KiB', `${HEAD}content-length: 100000\r\n\r\n${'x'.repeat(70_000)}`],
    ['chunks of more than 64 KiB', `${HEAD}transfer-encoding: chunked\r\n\r\n${`4000\r\n${'x'.repeat(0x4000)}\r\n`.repeat(5)}`],
    ['an extension of a chunk without end', `${HEAD}transfer-encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}`],
    ['trailers without end', `${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n${'x: y\r\n'.repeat(40_000)}`],
  ])('after %s, of which the rest is not read', (_, wire) => {
    for (const partBytes of [Infinity, 1000])
      expect(read(wire, partBytes)).toMatchObject({ status: 200, isComplete: true, keepsConnection: false });
  });
});

it('informational responses whose heads are longer than all that is read have too many headers', () => {
  const response = new HttpResponse();
  const begin = `HTTP/1.1 103 Early Hints\r\nx: ${'x'.repeat(16_000)}`;
  const end = `${'x'.repeat(16_000)}\r\n\r\n`;
  const responses = () => {
    for (let n = 0; n < 8; n++) for (const part of [begin, end]) response.take(Buffer.from(part));
  };
  expect(responses).toThrow('the response has too many headers');
});
