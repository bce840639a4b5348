import { describe, expect, it } from '@jest/globals';
import { Invalid } from '#contracts';
import { recoveredSince } from './delivery.dto.js';

describe('the time since which deliveries are recovered', () => {
  it.each([
    ['2026-01-31T12:00:00Z', Date.UTC(2026, 0, 31, 12)],
    ['1763715600', 1_763_715_600_000],
    [1_763_715_600.5, 1_763_715_600_500],
  ])('can be %j', (since, ms) => {
    expect(recoveredSince({ since })).toBe(ms);
  });

  it.each<[unknown, string]>([
    [undefined, 'since is required: ISO 8601 or Unix seconds'],
    [null, 'since is required: ISO 8601 or Unix seconds'],
    ['yesterday', 'since must be ISO 8601 or Unix seconds, not "yesterday"'],
    [-1, 'since must be ISO 8601 or Unix seconds, not -1'],
    [{}, 'since must be ISO 8601 or Unix seconds, not {}'],
  ])('cannot be %j', (since, message) => {
    expect(() => recoveredSince({ since: since as string })).toThrow(new Invalid([{ field: 'since', message }]));
  });
});
