import { describe, expect, it } from '@jest/globals';
import { TokenBucket } from './token-bucket.js';

describe('a bucket of 10 tokens per second', () => {
  it('begins full', () => {
    expect(new TokenBucket(10, 0).take(100, 0)).toBe(10);
  });

  it('fills with time, and only so far', () => {
    const bucket = new TokenBucket(10, 0);
    bucket.take(10, 0);
    expect(bucket.take(10, 50)).toBe(0);
    expect(bucket.msTo(1)).toBe(50);
    expect(bucket.take(10, 100)).toBe(1);
    expect(bucket.take(1, 550)).toBe(1);
    expect(bucket.take(100, 60_000)).toBe(10);
  });

  it('gives none if there are fewer than needed', () => {
    const bucket = new TokenBucket(10, 0);
    bucket.take(9, 0);
    expect(bucket.take(10, 0, 2)).toBe(0);
    expect(bucket.msTo(2)).toBe(100);
    expect(bucket.take(10, 100, 2)).toBe(2);
  });

  it('is full again after a time that depends on what was taken', () => {
    const bucket = new TokenBucket(10, 0);
    expect(bucket.msToFull(0)).toBe(0);
    bucket.take(4, 0);
    expect(bucket.msToFull(0)).toBe(400);
    expect(bucket.msToFull(300)).toBe(100);
    expect(bucket.msToFull(500)).toBe(0);
  });

  it('takes back what was not used', () => {
    const bucket = new TokenBucket(10, 0);
    bucket.giveBack(bucket.take(4, 0));
    expect(bucket.take(100, 0)).toBe(10);
    bucket.giveBack(100);
    expect(bucket.take(100, 0)).toBe(10);
  });
});
