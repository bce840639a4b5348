import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DownloadQuota, TooMuchDownloaded } from './download-quota.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('the downloads of an account in a day', () => {
  it('are limited, and those of another one are counted separately', async () => {
    const quota = new DownloadQuota(100);
    await quota.count('u_a', 99);
    await quota.check('u_a');
    await quota.count('u_a', 1);
    await expect(quota.check('u_a')).rejects.toBeInstanceOf(TooMuchDownloaded);
    await quota.check('u_b');
  });

  it('count for a day, and not any more afterwards', async () => {
    const quota = new DownloadQuota(100);
    await quota.count('u_a', 1000);
    jest.advanceTimersByTime(23 * 3600_000);
    await expect(quota.check('u_a')).rejects.toThrow('try again in 1 h');
    jest.advanceTimersByTime(3600_001);
    await quota.check('u_a');
  });

  it('are not limited for the operator, or without a limit', async () => {
    const quota = new DownloadQuota(100);
    await quota.count('', 1000);
    await quota.check('');
    const unlimited = new DownloadQuota(null);
    await unlimited.count('u_a', 2 ** 40);
    await unlimited.check('u_a');
  });
});
