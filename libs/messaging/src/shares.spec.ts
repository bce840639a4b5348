import { describe, expect, it } from '@jest/globals';
import { shares } from './shares.js';

const KIB = 1024;

describe('records are divided into shares', () => {
  it.each<[string, (number | null)[], number[]]>([
    ['nothing', [], []],
    ['small ones', [1, 2, 3], [3]],
    ['up to 256 KiB', [128 * KIB, 128 * KIB, 1], [2, 1]],
    ['large ones alone', [1, 900 * KIB, 900 * KIB, 900 * KIB, 1], [1, 1, 1, 1, 1]],
    ['tombstones', [null, null], [2]],
    ['many of 8 KiB', Array<number>(100).fill(8 * KIB), [32, 32, 32, 4]],
  ])('%s', (_, sizes, expected) => {
    const rows = sizes.map((size, id) => ({ id, value: size === null ? null : Buffer.alloc(size) }));
    expect(shares(rows).map((share) => share.length)).toEqual(expected);
    expect(shares(rows).flat()).toEqual(rows);
  });
});
