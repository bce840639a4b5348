import { describe, expect, it } from '@jest/globals';
import { verifyWebhook } from '@sluice/client';
import type { Session } from '../session/session.js';
import { listen, targetUrl, webhookHeaders } from './listen.js';

describe('targetUrl', () => {
  it.each([
    ['4000', 'http://localhost:4000/'],
    ['4000/hooks?a=1', 'http://localhost:4000/hooks?a=1'],
    ['4000?a=1', 'http://localhost:4000/?a=1'],
    ['localhost:4000/hooks', 'http://localhost:4000/hooks'],
    ['127.0.0.1:4000/hooks', 'http://127.0.0.1:4000/hooks'],
    ['http://user@0.0.0.0:4000', 'http://user@0.0.0.0:4000/'],
    ['4000.example.com', 'http://4000.example.com/'],
    ['https://example.com', 'https://example.com/'],
  ])('the target of %s is %s', (text, url) => {
    expect(targetUrl(text)).toBe(url);
  });

  it.each(['65536', '65536/hooks', 'http://', ':4000', 'a b'])('refuses %j', (text) => {
    expect(() => targetUrl(text)).toThrow('not a port or URL');
  });

  it.each([
    ['http://4031/hooks', '0.0.15.191'],
    ['4031:80', '0.0.15.191'],
    ['0xfbf', '0.0.15.191'],
    ['15.191:80', '15.0.0.191'],
    ['127.1:4031', '127.0.0.1'],
  ])('refuses %j, a number that means the address %s', (text, address) => {
    expect(() => targetUrl(text)).toThrow(`${text} means the address ${address}: write it so, or localhost:PORT`);
  });
});

describe('listen', () => {
  it.each(['hello world', 'whsec_', 'c2VjcmV0', 'whsec_c2VjcmV0!'])(
    'refuses to sign with the secret %j, with which nobody can verify',
    async (secret) => {
      const session = { sluice: { async *each() {} }, env: { SLUICE_WEBHOOK_SECRET: secret }, endWithReader() {} } as unknown as Session;
      await expect(listen(session, '4000', { source: ['p_1'] })).rejects.toMatchObject({
        ...{ message: 'SLUICE_WEBHOOK_SECRET must be whsec_ followed by base64', code: 2 },
      });
    },
  );
});

describe('webhookHeaders', () => {
  const summary = {
    id: '1763715600123-40960',
    indexed_at_ms: 1_763_715_600_123,
    event: { order: 17 },
    metadata: { emitter_id: 'dc_1', emit_id: 'e1', name: 'ü' },
  };
  const secret = `whsec_${Buffer.from('secret').toString('base64')}`;
  const body = JSON.stringify(summary.event);
  const headersOf = (metadata: Partial<typeof summary.metadata>) =>
    webhookHeaders({ ...summary, metadata: { ...summary.metadata, ...metadata } }, body, secret);

  it('signs the event as Sluice does, with the same message id each time', async () => {
    const headers = headersOf({});
    expect(await verifyWebhook(secret, headers, body)).toEqual({ order: 17 });
    expect(headers).toMatchObject({
      'webhook-id': expect.stringMatching(/^msg_[0-9a-f]{32}$/),
      'ce-id': summary.id,
      'ce-time': '2025-11-21T09:00:00.123Z',
    });
    expect(headersOf({})['webhook-id']).toBe(headers['webhook-id']);
  });

  it.each([{ emit_id: 'e2' }, { emitter_id: 'dc_2' }, { name: '' }])('has another message id with %j', (change) => {
    expect(headersOf(change)['webhook-id']).not.toBe(headersOf({})['webhook-id']);
  });

  it.each([
    ['', 'default'],
    ['$errors', '$errors'],
    ['new order/1', 'new%20order/1'],
    ['bestellt-größer', 'bestellt-gr%C3%B6%C3%9Fer'],
    ['50%"', '50%25%22'],
    ['😀', '%F0%9F%98%80'],
  ])('has the stream %j as a delivery has it: %s', (name, expected) => {
    expect(headersOf({ name })).toMatchObject({ 'ce-type': expected, 'ce-sluicestream': expected });
  });

  it.each(['订单 17', '😀', 'a\r\nx-evil: 1', '\ud800'])('can be sent if the emit id is %j', (emit_id) => {
    expect(() => new Headers(headersOf({ emit_id, name: emit_id }))).not.toThrow();
  });
});
