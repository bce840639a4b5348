import { describe, expect, it } from '@jest/globals';
import { defaultLimits } from '../sandbox-config.js';
import { emitted } from './emitted.js';

const limits = { ...defaultLimits, eventBytes: 1 << 20 };
const ACCEPTED = 524_288;
const head = { method: 'POST', path: '/', query: {}, headers: { 'content-type': 'text/plain' } };
const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'multipart/form-data; boundary=x' };
const base64 = (text: string) => ({ bodyRaw: Buffer.from(text).toString('base64'), bodyBase64: true });
const text = (unit: string) => ({ bodyRaw: unit.repeat(ACCEPTED), body: unit.repeat(ACCEPTED) });
const binary = Buffer.alloc(ACCEPTED, 255).toString('base64');
const array = '[' + '"a",'.repeat(ACCEPTED / 4 - 1) + '0]';
const numbers = '[' + '1e20,'.repeat(100_000) + '0]';

describe('a request that is emitted as it was received', () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['is whole if it is small', { bodyRaw: '{"a":1}', body: { a: 1 } }, { bodyRaw: '{"a":1}', body: { a: 1 } }],
    ['has a large text once', text('a'), { body: text('a').body }],
    ['has large binary data once', { bodyRaw: binary, bodyBase64: true, body: binary }, { bodyBase64: true, body: binary }],
    ['has large JSON once', { headers: json, bodyRaw: array, body: JSON.parse(array) }, { headers: json, body: JSON.parse(array) }],
    ['has a text of which each character is escaped in base64', text('\u0001'), base64(text('\u0001').body)],
    [
      'has JSON that grows in base64',
      { headers: json, bodyRaw: numbers, body: JSON.parse(numbers) },
      { headers: json, ...base64(numbers) },
    ],
    ['keeps the files of a form', { headers: form, ...text('"'), body: { f: {} } }, { headers: form, ...base64(text('"').body) }],
  ])('%s', (_, body, expected) => {
    const received = { ...head, ...body };
    const { item, bytes } = emitted(received, undefined, limits, received);
    expect(bytes).toBeLessThanOrEqual(limits.eventBytes);
    expect(JSON.parse(item[1])).toEqual({ ...head, ...expected });
  });
});

describe('the time of an event', () => {
  const metaOf = (meta: object) => emitted(1, meta, limits).item[2];
  const now = Math.floor(Date.now() / 1000);

  it.each(['20261204', ' 2027 '])('%j is doubtful: `delivery_ts` throws, and `ts` counts as absent', (text) => {
    expect(() => metaOf({ delivery_ts: text })).toThrow('an ISO 8601 text with hyphens');
    expect(metaOf({ ts: text })).toMatchObject({ ts: undefined });
  });

  it.each([
    ['seconds', String(now), now * 1000],
    ['milliseconds', String(now * 1000 + 5), now * 1000 + 5],
    ['a date', new Date(now * 1000).toISOString().slice(0, 10), Math.floor(now / 86_400) * 86_400_000],
    ['seconds as a number', 20_261_204, 20_261_204_000],
  ])('can be %s', (_, value, ms) => expect(metaOf({ ts: value, delivery_ts: value })).toMatchObject({ ts: ms, deliveryTs: ms }));
});

describe('any other event that is too large', () => {
  const large = 'x'.repeat(limits.eventBytes);
  it.each<[string, unknown, unknown]>([
    ['made by the component', { ...head, ...text('a') }, { ...head, ...text('a') }],
    ['that is not a request', [large], undefined],
  ])('%s is refused', (_, event, received) => {
    expect(() => emitted(event, undefined, limits, received ?? event)).toThrow('the limit is 1048576');
  });
});
