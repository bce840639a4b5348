import { RateLimiterMemory } from 'rate-limiter-flexible';

const daySeconds = 86_400;

/** Thrown when an account has downloaded as much as it may in a day. */
export class TooMuchDownloaded extends Error {
  override readonly name = 'TooMuchDownloaded';
}

/** How much each account has downloaded within a day of its first download, in this replica. */
export class DownloadQuota {
  private readonly downloaded: RateLimiterMemory;

  /** @param bytesPerDay null: no limit */
  constructor(private readonly bytesPerDay: number | null) {
    this.downloaded = new RateLimiterMemory({ points: bytesPerDay ?? Number.MAX_SAFE_INTEGER, duration: daySeconds });
  }

  /** @throws TooMuchDownloaded */
  async check(accountId: string): Promise<void> {
    const { bytesPerDay } = this;
    const used = await this.downloaded.get(accountId);
    if (bytesPerDay === null || used === null || used.consumedPoints < bytesPerDay) return;
    const hours = Math.ceil(used.msBeforeNext / 3600_000);
    const megabytes = Math.round(bytesPerDay / 2 ** 20);
    throw new TooMuchDownloaded(`this account has downloaded ${megabytes} MB of packages in a day; try again in ${hours} h`);
  }

  /** Counts what an installation has downloaded. Without an account, it is the operator's, which is not limited. */
  async count(accountId: string, bytes: number): Promise<void> {
    if (accountId !== '' && bytes > 0) await this.downloaded.penalty(accountId, bytes);
  }
}
