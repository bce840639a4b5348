import { describe, expect, it } from '@jest/globals';
import { addressOf, requestHeaders } from './api.js';
import type { Session } from '../session/session.js';
import { headersOf, requestOf, verify } from './verify.js';

describe('addressOf', () => {
  const operation = {
    ...{ operationId: 'publish', method: 'POST', path: '/v1/sources/{id}/events', summary: '', hasBody: true },
    parameters: [
      { name: 'id', in: 'path', required: true },
      { name: 'id', in: 'query' },
      { name: 'since', in: 'query', required: true },
    ],
  };
  const of = (values: Record<string, string>) => addressOf(operation, new Map(Object.entries(values)));

  it('fills the path and the query; ?name means the query where both have the name', () => {
    const { path, query } = of({ id: 'a/b', '?id': 'e 1', since: '1' });
    expect([path, query.toString()]).toEqual(['/v1/sources/a%2Fb/events', 'id=e+1&since=1']);
  });

  it('names what is missing and what is unknown', () => {
    expect(() => of({})).toThrow('missing: id=… since=…');
    for (const id of ['', '.', '..']) expect(() => of({ id, since: '1' })).toThrow('missing: id=…');
    expect(() => of({ id: 'a', since: '1', limit: '2' })).toThrow('publish has no parameter limit; known are id, id, since');
  });
});

describe('requestHeaders', () => {
  it('reads headers with or without a space, and may contain colons', () => {
    expect(requestHeaders(['ce-type:order.created', 'CE-Source: https://example.com/shop'])).toEqual({
      'ce-type': 'order.created',
      'ce-source': 'https://example.com/shop',
    });
  });

  it('refuses what cannot be the name of a header', () => {
    expect(() => requestHeaders(['bad name: 5'])).toThrow('bad name is not the name of a header');
  });

  it.each(['ce-subject: Größe', 'ce-subject: 5 €', 'ce-subject: a\r\nhost: b'])('refuses %j', (line) => {
    expect(() => requestHeaders([line])).toThrow('a header must consist of ASCII characters');
  });
});

describe('requestOf', () => {
  it.each([
    'POST /hooks HTTP/1.1\r\nHost: a:1\r\nWebhook-Id: msg_1\r\n\r\n{"a":\r\n\r\n1}',
    'Host: a:1\r\nWebhook-Id: msg_1\r\n\r\n{"a":\r\n\r\n1}',
  ])('splits a request into headers and body', (text) => {
    expect(requestOf(Buffer.from(text))).toEqual({
      headers: { host: 'a:1', 'webhook-id': 'msg_1' },
      body: Buffer.from('{"a":\r\n\r\n1}'),
    });
  });

  it('refuses text without headers', () => {
    expect(() => requestOf(Buffer.from('{"a":1}'))).toThrow('to pass only the body, use -H');
    expect(() => headersOf(['nothing'])).toThrow('a header is written name: value, not nothing');
  });
});

it('an empty SLUICE_WEBHOOK_SECRET verifies nothing', async () => {
  const session = { env: { SLUICE_WEBHOOK_SECRET: '' } } as unknown as Session;
  await expect(verify(session, {})).rejects.toThrow('--webhook, --secret-file or SLUICE_WEBHOOK_SECRET is required');
});
