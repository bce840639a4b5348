import { describe, expect, it } from '@jest/globals';
import { Invalid } from '#contracts';
import { RequestPipe } from '../http/request.pipe.js';
import { recoveredSince, RecoverParameters } from './delivery.dto.js';

describe('the time since which deliveries are recovered', () => {
  const validated = (since: unknown): Promise<RecoverParameters> =>
    new RequestPipe({ validateCustomDecorators: true }).transform(
      { since },
      { type: 'custom', metatype: RecoverParameters },
    ) as Promise<RecoverParameters>;

  it.each([
    ['2026-01-31T12:00:00Z', Date.UTC(2026, 0, 31, 12)],
    ['1763715600', 1_763_715_600_000],
    [1_763_715_600.5, 1_763_715_600_500],
  ])('can be %j', async (since, ms) => {
    expect(recoveredSince(await validated(since))).toBe(ms);
  });

  it.each<[unknown, string]>([
    [undefined, 'since is required: a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds'],
    [null, 'since is required: a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds'],
    ['yesterday', 'since must be a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds, not "yesterday"'],
    [-1, 'since must be a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds, not -1'],
    [{}, 'since must be a time in ISO 8601, such as 2026-01-31T12:00:00Z, or Unix seconds, not {}'],
  ])('cannot be %j', async (since, message) => {
    await expect(validated(since)).rejects.toEqual(new Invalid([{ field: 'since', message }]));
  });
});
