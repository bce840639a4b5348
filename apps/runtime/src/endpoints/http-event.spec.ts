import { describe, expect, it } from '@jest/globals';
import { nestsTooDeeply } from '#contracts';
import { httpEvent, httpRun } from './http-event.js';

const event = (contentType: string | undefined, body: string | Buffer, extra: { search?: string } = {}) =>
  httpEvent({
    method: 'POST',
    path: '/a/b',
    search: extra.search ?? '',
    headers: { ...(contentType ? { 'content-type': contentType } : {}), connection: 'close' },
    body: Buffer.from(body),
  });

describe('the event of an HTTP request', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  it.each([
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json; charset=utf-8', '[1]', [1]],
    ['application/cloudevents+json', '{"specversion":"1.0"}', { specversion: '1.0' }],
    ['text/json', '[1]', [1]],
    ['application/geo+x+json', '[1]', [1]],
    ['application/json-seq', '[1]', '[1]'],
    ['application/json', '{broken', '{broken'],
    ['application/x-www-form-urlencoded', 'a=1&b=x%20y&b=z', { a: '1', b: ['x y', 'z'] }],
    ['text/plain', 'hello', 'hello'],
    [undefined, 'hello', 'hello'],
    ['application/json', '\uFEFF{"a":1}', { a: 1 }],
    ['application/json', '\uFEFF{broken', '\uFEFF{broken'],
    ['application/json', '', ''],
    ['application/x-www-form-urlencoded', '', ''],
    ['multipart/form-data; boundary=X', '', ''],
    [undefined, '', ''],
    ['multipart/form-data; boundary=X', '--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--\r\n', { a: '1' }],
    ['multipart/form-data', 'nonsense', 'nonsense'],
    ['application/json', deep, deep],
  ])('body %#: %s', (type, body, parsed) => {
    const { body: found, bodyRaw } = event(type, body);
    expect(found).toEqual(parsed);
    expect(bodyRaw).toBe(body);
  });
  it('has query, path and headers, but not those of the connection', () => {
    expect(event('text/plain', 'x', { search: 'q=1&q=2&r=' })).toEqual({
      method: 'POST',
      path: '/a/b',
      query: { q: ['1', '2'], r: '' },
      headers: { 'content-type': 'text/plain' },
      bodyRaw: 'x',
      body: 'x',
    });
  });
  it.each(['a=1&b=2&a=3', 'a=b+c', 'a=/b', 'flag', 'a=%c3%a9', '&'])(
    'has the query as it was sent if its fields do not show that: %s',
    (search) => {
      expect(event('text/plain', 'x', { search })).toHaveProperty('rawQuery', search);
    },
  );
  it.each(['', 'a=1&b=2', 'a=1&a=2&b=', 'a=%2Fb%20c'])('has a query once if its fields show how it was sent: %s', (search) => {
    expect(event('text/plain', 'x', { search })).not.toHaveProperty('rawQuery');
  });
  it('has every field of a query and of a form, however many there are', () => {
    const names = Array.from({ length: 1500 }, (_, n) => `f${n}`);
    const fields = names.map((name) => `${name}=1`).join('&');
    const { query, body } = event('application/x-www-form-urlencoded', fields, { search: fields });
    expect(Object.keys(query)).toEqual(names);
    expect(Object.keys(body as object)).toEqual(names);
  });
  it('shows a binary body in base64', () => {
    expect(event('application/octet-stream', Buffer.from([0xff, 0xfe]))).toMatchObject({ bodyRaw: '//4=', bodyBase64: true });
  });
  it.each(['application/json', 'application/x-www-form-urlencoded'])('does not parse the base64 of binary %s', (type) => {
    const bytes = Buffer.from('true', 'base64');
    expect(event(type, bytes)).toMatchObject({ bodyRaw: 'true', bodyBase64: true, body: 'true' });
  });

  it('has JSON parsed that is nested no deeper than an event may be', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    expect(nestsTooDeeply(event('application/json', nested(199)))).toBe(false);
    expect(event('application/json', nested(199)).body).toBeInstanceOf(Array);
    expect(event('application/json', nested(200)).body).toBe(nested(200));
  });
});

describe('the run for an HTTP request', () => {
  const run = (body: string) =>
    httpRun({ method: 'POST', path: '/', search: 'a=1', headers: { 'content-type': 'text/plain' }, body: Buffer.from(body) });
  const head = { method: 'POST', path: '/', query: { a: '1' }, headers: { 'content-type': 'text/plain' } };

  it('has a small body in its event', () => {
    expect(run('x')).toEqual({ event: JSON.stringify({ ...head, bodyRaw: 'x', body: 'x' }) });
  });

  it('has a large body beside its event, not parsed', () => {
    const body = 'x'.repeat(40_000);
    expect(run(body)).toEqual({ event: JSON.stringify(head), http_body: Buffer.from(body).toString('base64') });
  });
});
