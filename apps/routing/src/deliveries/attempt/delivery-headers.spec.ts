import { describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { keyOfSecret, newSigningSecret } from '../../webhooks/signing-secret.js';
import type { Delivery } from '../delivery.js';
import { deliveryHeaders, messageId } from './delivery-headers.js';

const DELIVERY: Delivery = {
  webhookId: 'wh_1',
  place: { ms: Date.UTC(2026, 0, 2, 3, 4, 5, 678), seq: 40_960 },
  emitterId: 'dc_1',
  stream: '',
  emitId: '2abcdefghijklmnopqrstuvwxyz',
  json: Buffer.from('{"price": "5 €",\n "n": 1.0}'),
};
const [secret, older, other] = [newSigningSecret(), newSigningSecret(), newSigningSecret()];
const headersOf = (change: Partial<Delivery> = {}, secrets = [secret]) =>
  deliveryHeaders({ ...DELIVERY, ...change }, { nowMs: Date.now(), keys: secrets.map(keyOfSecret), userAgent: 'Sluice/1' });

describe('a delivery', () => {
  it('is signed so that the independent library accepts it, byte for byte', () => {
    const headers = headersOf();
    expect(new Webhook(secret).verify(DELIVERY.json, headers)).toEqual({ price: '5 €', n: 1 });
    expect(() => new Webhook(secret).verify(Buffer.from('{"price": "6 €",\n "n": 1.0}'), headers)).toThrow();
    expect(() => new Webhook(other).verify(DELIVERY.json, headers)).toThrow();
  });

  it('is accepted with each of two live secrets', () => {
    const headers = headersOf({}, [secret, older]);
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const live of [secret, older]) expect(new Webhook(live).verify(DELIVERY.json, headers)).toBeTruthy();
    expect(() => new Webhook(other).verify(DELIVERY.json, headers)).toThrow();
  });

  it('describe the event as CloudEvents does', () => {
    expect(headersOf()).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Sluice/1',
      'ce-specversion': '1.0',
      'ce-id': '1767323045678-40960',
      'ce-source': 'dc_1',
      'ce-type': 'default',
      'ce-time': '2026-01-02T03:04:05.678Z',
      'ce-sluiceemitter': 'dc_1',
      'ce-sluiceevent': '1767323045678-40960',
      'ce-sluicestream': 'default',
    });
  });

  it("has its producer's attributes unchanged, beside those of Sluice", () => {
    const attributes = {
      ...{ id: 'e1', source: '/shop', type: 'order.created', subject: 'Größe 100%', dataschema: 'https://example.com/s' },
      ...{ tenant: 'a\r\nx-evil: 1', datacontenttype: 'application/vnd.shop+json; v=1' },
    };
    const headers = headersOf({ stream: 'orders', time: '2025-12-31t23:59:59z', context: { attributes, traceparent: '00-a-b-01' } });
    expect(headers).toMatchObject({
      'content-type': 'application/vnd.shop+json; v=1',
      'ce-id': 'e1',
      'ce-source': '/shop',
      'ce-type': 'order.created',
      'ce-time': '2025-12-31t23:59:59z',
      'ce-subject': 'Gr%C3%B6%C3%9Fe%20100%25',
      'ce-dataschema': 'https://example.com/s',
      'ce-tenant': 'a%0D%0Ax-evil:%201',
      'ce-sluicestream': 'orders',
      'ce-sluiceevent': '1767323045678-40960',
      traceparent: '00-a-b-01',
    });
    expect(headers).not.toHaveProperty('ce-datacontenttype');
    expect(headers).not.toHaveProperty('tracestate');
  });

  it.each(['text/plain', 'application/cloudevents+json', 'application/json\r\nx: y'])(
    'is JSON though its data is %j',
    (datacontenttype) => {
      const headers = headersOf({ context: { attributes: { datacontenttype } } });
      expect(headers['content-type']).toBe('application/json');
      expect(headers['ce-datacontenttype']).toBe(datacontenttype.replace('\r\n', '%0D%0A').replace(' ', '%20'));
    },
  );

  it('forwards the trace of its attributes, unless it cannot be a header', () => {
    const trace = (context: Delivery['context']) => headersOf({ context }).traceparent;
    expect(trace({ attributes: { traceparent: '00-a-b-01' } })).toBe('00-a-b-01');
    expect(trace({ attributes: { traceparent: '00-a-b-01' }, traceparent: '00-c-d-00' })).toBe('00-c-d-00');
    expect(trace({ traceparent: 'a\r\nx: y' })).toBeUndefined();
  });

  it.each([
    ['2025-12-31T23:59:59Z', '2025-12-31T23:59:59Z'],
    ['2025-12-31T23:59:59.123456+02:00', '2025-12-31T23:59:59.123456+02:00'],
    ['yesterday', '2026-01-02T03:04:05.678Z'],
    ['2025-99-99T00:00:00Z', '2026-01-02T03:04:05.678Z'],
    [`2025-12-31T23:59:59.${'1'.repeat(101)}Z`, '2026-01-02T03:04:05.678Z'],
    ['2025-12-31T23:59:59Z\r\nx-evil: 1', '2026-01-02T03:04:05.678Z'],
  ])('has the time %j as %s', (time, expected) => {
    expect(headersOf({ time })['ce-time']).toBe(expected);
  });

  it.each([
    ['$errors', '$errors'],
    ['new order', 'new%20order'],
    ['bestellt-größer', 'bestellt-gr%C3%B6%C3%9Fer'],
    ['50%"', '50%25%22'],
    ['a\r\nx-evil: 1', 'a%0D%0Ax-evil:%201'],
    ['😀', '%F0%9F%98%80'],
  ])('has the stream %j as %s', (stream, expected) => {
    expect(headersOf({ stream })['ce-type']).toBe(expected);
  });
});

describe('the webhook-id', () => {
  const id = messageId(DELIVERY);

  it('is the same for the same emit, wherever it stands in the log', () => {
    const elsewhere = { ...DELIVERY, place: { ms: 1, seq: 2 } };
    expect(messageId(elsewhere)).toBe(id);
    expect(id).toMatch(/^msg_[0-9a-f]{32}$/);
  });

  it.each([{ emitId: 'x' }, { webhookId: 'wh_2' as const }, { emitterId: 'dc_2' as const }, { stream: '$errors' }])(
    'is another one with %j',
    (change) => {
      expect(messageId({ ...DELIVERY, ...change })).not.toBe(id);
    },
  );
});
