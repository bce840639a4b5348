import { describe, expect, it } from '@jest/globals';
import { base62, fromBase62, isId, kindOfId, newId, randomText, timeOfId } from './ids.js';
import { ksuid } from './ids.js';

describe('ids', () => {
  it('have a prefix and 12 or more base-62 characters', () => expect(newId('source')).toMatch(/^dc_[0-9A-Za-z]{18}$/));
  it('sort by creation time, even within a millisecond', () => {
    const ids = Array.from({ length: 1000 }, () => newId('component'));
    expect([...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))).toEqual(ids);
    expect(new Set(ids).size).toBe(1000);
  });
  it('contain the time at which they were made', () => {
    const before = Date.now();
    expect(timeOfId(newId('subscription'))).toBeGreaterThanOrEqual(before);
    expect(timeOfId('sub_0Vg2mXq1Zk3TnB7cYw')).toBe(timeOfId('wh_0Vg2mXq1000000000'));
    expect(timeOfId('sub_0000010z')).toBe(62 * 62 + 61);
  });
  it.each([
    ['dc_abc', true],
    ['dc_', false],
    ['p_abc', false],
    ['dc_a b', false],
    ['dc_a\n', false],
    [5, false],
  ])('recognise %j as a source id: %j', (text, expected) => expect(isId('source', text)).toBe(expected));
  it.each(['source', 'workflow', 'webhook'] as const)('show the kind of their resource: a %s', (kind) =>
    expect(kindOfId(newId(kind))).toBe(kind),
  );
  it('are padded to a fixed length in base 62', () => expect(base62(61n, 3)).toBe('00z'));
  it('are read from base 62 as they were written', () => {
    for (const value of [0n, 61n, 62n, 2n ** 64n]) expect(fromBase62(base62(value, 12))).toBe(value);
  });
  it('contain random text that does not repeat', () => expect(new Set(Array.from({ length: 100 }, () => randomText(24))).size).toBe(100));
  it('include KSUIDs with 27 characters in the published format', () => {
    // the example of segmentio/ksuid
    expect(ksuid(new Date('2017-10-09T21:00:47-07:00').getTime(), Buffer.from('b5a1cd34b5f99d1154fb6853345c9735', 'hex'))).toBe(
      '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
    );
  });
});
