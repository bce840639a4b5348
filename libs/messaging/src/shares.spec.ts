import { describe, expect, it } from '@jest/globals';
import { shares } from './publisher.js';

const KIB = 1024;

describe('shares divides', () => {
  it.each<[string, (number | null)[], number[]]>([
    ['nothing', [], []],
    ['small records', [1, 2, 3], [3]],
    ['records up to 256 KiB', [128 * KIB, 128 * KIB, 1], [2, 1]],
    ['large records', [1, 900 * KIB, 900 * KIB, 900 * KIB, 1], [1, 1, 1, 1, 1]],
    ['tombstones', [null, null], [2]],
    ['many records of 8 KiB', Array<number>(100).fill(8 * KIB), [32, 32, 32, 4]],
  ])('%s so that each share fits', (_, sizes, expected) => {
    const rows = sizes.map((size, id) => ({ id, value: size === null ? null : Buffer.alloc(size) }));
    expect(shares(rows).map((share) => share.length)).toEqual(expected);
    expect(shares(rows).flat()).toEqual(rows);
  });
});
