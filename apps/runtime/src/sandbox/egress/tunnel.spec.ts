import { describe, expect, it } from '@jest/globals';
import { readConnectRequest } from './tunnel.js';

const read = (text: string) => readConnectRequest(Buffer.from(text, 'latin1'));

describe('a request of a guest to its proxy', () => {
  it.each([
    ['CONNECT api.test:443 HTTP/1.1\r\n\r\n', { host: 'api.test', port: 443, rest: '' }],
    ['CONNECT 1.1.1.1:80 HTTP/1.1\r\nhost: x\r\n\r\nrest', { host: '1.1.1.1', port: 80, rest: 'rest' }],
    ['connect [::1]:8080 http/1.1\r\n\r\n', { host: '[::1]', port: 8080, rest: '' }],
  ])('%j', (text, { rest, ...request }) => {
    expect(read(text)).toEqual({ ...request, rest: Buffer.from(rest) });
  });

  it.each(['', 'CONN', 'CONNECT a:1 HTTP/1.1\r\n', 'CONNECT a:1 HTTP/1.1\n\n'])('waits for more of %j', (text) => {
    expect(read(text)).toBe('more');
  });

  it.each([
    'GET http://127.0.0.1/ HTTP/1.1\r\n\r\n',
    'CONNECT 93.184.216.34:80@127.0.0.1:80 HTTP/1.1\r\n\r\n',
    'CONNECT a HTTP/1.1\r\n\r\n',
    'CONNECT :80 HTTP/1.1\r\n\r\n',
    'CONNECT a:0 HTTP/1.1\r\n\r\n',
    'CONNECT a:99999 HTTP/1.1\r\n\r\n',
    'CONNECT a:65536 HTTP/1.1\r\n\r\n',
    'CONNECT a:-1 HTTP/1.1\r\n\r\n',
    'CONNECT a b:80 HTTP/1.1\r\n\r\n',
    'CONNECT a\0b:80 HTTP/1.1\r\n\r\n',
    'CONNECT a:80 HTTP/1.1 x\r\n\r\n',
    ' CONNECT a:80 HTTP/1.1\r\n\r\n',
    `CONNECT ${'a'.repeat(254)}:80 HTTP/1.1\r\n\r\n`,
    `CONNECT a:80 HTTP/1.1\r\nx: ${'y'.repeat(2000)}\r\n\r\n`,
    'x'.repeat(1025),
    '\r\n\r\n',
  ])('refuses %j', (text) => {
    expect(read(text)).toBe('bad');
  });
});
