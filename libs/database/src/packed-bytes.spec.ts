import { describe, expect, it } from '@jest/globals';
import { packedBytes } from './packed-bytes.js';

describe('byte strings as parameters', () => {
  it('are one buffer, with the positions of each', () => {
    const [starts, lengths, bytes] = packedBytes([Buffer.from('ab'), null, Buffer.alloc(0), Buffer.from('cde')]);
    expect([starts, lengths, bytes.toString()]).toEqual([[1, 3, 3, 3], [2, null, 0, 3], 'abcde']);
  });

  it('are empty arrays and an empty buffer without values', () => expect(packedBytes([])).toEqual([[], [], Buffer.alloc(0)]));
});
