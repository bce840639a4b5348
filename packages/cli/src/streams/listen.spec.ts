import { describe, expect, it } from '@jest/globals';
import { verifyWebhook } from '@sluice/client';
import { targetUrl, webhookHeaders } from './listen.js';

describe('targetUrl', () => {
  it.each([
    ['4000', 'http://localhost:4000/'],
    ['localhost:4000/hooks', 'http://localhost:4000/hooks'],
    ['https://example.com', 'https://example.com/'],
  ])('of %s is %s', (text, url) => {
    expect(targetUrl(text)).toBe(url);
  });

  it.each(['65536', 'http://', 'a b'])('refuses %j', (text) => {
    expect(() => targetUrl(text)).toThrow('not a port or URL');
  });
});

describe('webhookHeaders', () => {
  const summary = {
    id: '1763715600123-40960',
    indexed_at_ms: 1_763_715_600_123,
    event: { order: 17 },
    metadata: { emitter_id: 'dc_1', emit_id: 'e1', name: 'ü' },
  };

  it('signs the event as Sluice does, with the same message id each time', async () => {
    const secret = `whsec_${Buffer.from('secret').toString('base64')}`;
    const body = JSON.stringify(summary.event);
    const headers = webhookHeaders(summary, body, secret);
    expect(await verifyWebhook(secret, headers, body)).toEqual({ order: 17 });
    expect(headers).toMatchObject({
      'webhook-id': 'msg_e1',
      'ce-id': summary.id,
      'ce-type': '%C3%BC',
      'ce-time': '2025-11-21T09:00:00.123Z',
    });
    expect(webhookHeaders(summary, body, secret)['webhook-id']).toBe('msg_e1');
  });
});
