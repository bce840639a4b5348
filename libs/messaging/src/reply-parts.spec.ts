import { describe, expect, it } from '@jest/globals';
import { ArrivedParts, PART_BYTES, partHeader, partsOf } from './reply-parts.js';

const bytes = (length: number) => Buffer.from(Array.from({ length }, (_, n) => n % 251));

describe('a reply', () => {
  it.each([
    ['nothing', 0, 1],
    ['one part', PART_BYTES, 1],
    ['one part and a byte', PART_BYTES + 1, 2],
    ['three parts', 3 * PART_BYTES, 3],
  ])('a reply of %s is sent in parts that fit, and put together again', (_, length, count) => {
    const value = bytes(length);
    const parts = partsOf(value);
    expect(parts.map(({ index, of }) => [index, of])).toEqual(parts.map((_part, index) => [index, count]));
    expect(parts.map((part) => partHeader(part) === undefined)).toEqual(parts.map(() => count === 1));
    expect(Math.max(...parts.map((part) => part.value.length))).toBeLessThanOrEqual(PART_BYTES);
    expect(Buffer.concat(parts.map((part) => part.value)).equals(value)).toBe(true);
  });

  it('is complete when every part has arrived, in any order and some of them twice', () => {
    const value = bytes(2 * PART_BYTES + 10);
    const [a, b, c] = partsOf(value);
    const arrived = new ArrivedParts();
    const add = (part = a!) => arrived.add(partHeader(part)!, part.value);
    expect([add(c), add(a), add(c), add(a)]).toEqual([undefined, undefined, undefined, undefined]);
    expect(add(b)?.equals(value)).toBe(true);
  });

  it('is not mixed with the parts of another reply to the same request', () => {
    const [old, value] = [Buffer.alloc(2 * PART_BYTES, 1), bytes(2 * PART_BYTES)];
    const [a, b] = partsOf(old);
    const [c, d] = partsOf(value);
    const arrived = new ArrivedParts();
    const add = (part = a!) => arrived.add(partHeader(part)!, part.value);
    expect([add(a), add(c)]).toEqual([undefined, undefined]);
    expect(add(d)?.equals(value)).toBe(true);
    expect(add(b)?.equals(old)).toBe(true);
  });
});
